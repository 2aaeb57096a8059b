// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <variant>

namespace cudavision {

/// What an operation reports. Errors travel as values up to the element, which posts one message.
class [[nodiscard]] Status {
 public:
  enum class Code {
    ok,
    settings,  ///< a parameter is outside what is allowed; the message names it and the range
    resource,  ///< the device or its memory failed; the message carries CUDA's own text
  };

  Status() = default;
  static Status settings(std::string message) { return {Code::settings, std::move(message)}; }
  static Status resource(std::string message) { return {Code::resource, std::move(message)}; }

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code_ = Code::ok;
  std::string message_;
};

/// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Status error) : held_(std::move(error)) {}

  bool ok() const { return std::holds_alternative<T>(held_); }
  T& value() { return std::get<T>(held_); }
  const T& value() const { return std::get<T>(held_); }
  const Status& error() const { return std::get<Status>(held_); }

 private:
  std::variant<T, Status> held_;
};

/// What is wrong with a number that must lie in [least, most]; NaN does not.
inline Status check_range(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  char text[128];
  std::snprintf(text, sizeof text, "%s is %.10g: it must be %.10g to %.10g", name, value, least, most);
  return Status::settings(text);
}

namespace detail {

/// Does `work`, which returns a Status or a Result, and returns a resource error where it throws. All entries of the kernels go
/// through it: no exception leaves them.
template <typename Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return Status::resource(error.what());
    }
  } catch (const std::bad_alloc&) {  // of the message, too
    return Status::resource("out of memory");
  }
}

}  // namespace detail
}  // namespace cudavision
