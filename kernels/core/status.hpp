// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <charconv>
#include <string>
#include <utility>
#include <variant>

namespace cudavision {

/// The outcome of an operation. Errors are values that are returned up to the element, which posts one message.
class [[nodiscard]] Status {
 public:
  enum class Code {  // gst/frames/frames.h has the same numbers
    ok,
    settings,  ///< a parameter is out of range; the message names it and its range
    resource,  ///< the device or its memory failed; the message contains CUDA's error text
    frame,     ///< a frame does not match its caps; the next frame may be good
    late,      ///< the GPU did not finish in the given time
  };

  Status() = default;
  static Status settings(std::string message) { return {Code::settings, std::move(message)}; }
  static Status resource(std::string message) { return {Code::resource, std::move(message)}; }
  static Status frame(std::string message) { return {Code::frame, std::move(message)}; }
  static Status late(std::string message) { return {Code::late, std::move(message)}; }

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code_ = Code::ok;
  std::string message_;
};

/// A value, or the error that prevented it.
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

/// A number as text for messages: the shortest text that reads back as the same value, independent of the locale.
inline std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// Checks that a number lies in [least, most]. NaN fails. Errors: settings.
inline Status check_range(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  return Status::settings(std::string(name) + " is " + number_text(value) + ": it must be " + number_text(least) +
                          " to " + number_text(most));
}

}  // namespace cudavision
