// SPDX-License-Identifier: LGPL-2.1-or-later
// This file corresponds to ../containers.py.
#include "containers.hpp"

#include <cstdint>
#include <fstream>

namespace {

std::uint64_t number(const std::string& bytes, bool big) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value = value << 8 | std::uint8_t(bytes[big ? i : bytes.size() - 1 - i]);
  return value;
}

std::string read(std::ifstream& file, std::size_t count) {
  std::string bytes(count, '\0');
  file.read(bytes.data(), std::streamsize(count));
  return bytes;
}

std::uint64_t size_of(std::ifstream& file) {
  const auto end = file.seekg(0, std::ios::end).tellg();
  file.seekg(0);
  return end < 0 ? 0 : std::uint64_t(end);
}

}  // namespace

std::string fault_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::uint64_t size = size_of(file);
  bool mp4 = false;
  for (std::uint64_t at = 0; file && at + 8 <= size;) {
    file.seekg(std::streamoff(at));
    std::uint64_t length = number(read(file, 4), true);
    const std::string kind = ' ' + read(file, 4) + ' ';
    if (length == 1) length = number(read(file, 8), true);
    if (at == 0) mp4 = std::string(" ftyp moov mdat free skip wide styp moof pnot ").find(kind) != std::string::npos;
    if (!mp4) return {};
    at = length >= 8 && length <= size ? at + length : size + (length ? 1 : 0);  // 0: up to the end of the file
    if (at <= size && (kind == " moov " || kind == " moof ")) return {};
  }
  return mp4 ? "its index (moov) is missing: the file was cut off, is damaged, or is still being recorded" : "";
}

std::string cut_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::uint64_t size = size_of(file);
  const std::string name = read(file, 4);
  const std::uint64_t declared = number(read(file, 4), false) + 8;
  if (name != "RIFF" || read(file, 4) != "AVI " || declared <= size) return {};
  return "it is cut off: " + std::to_string(size) + " of " + std::to_string(declared) + " bytes are there";
}
