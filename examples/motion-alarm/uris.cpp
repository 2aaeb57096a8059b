// SPDX-License-Identifier: LGPL-2.1-or-later
#include "uris.hpp"

#include <gst/gst.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace {

constexpr auto npos = std::string::npos;
constexpr const char* secret = "***";  // replaces hidden parts
constexpr std::size_t short_text = 4;  // shorter texts are parts of other words
// Query parameters that describe the stream of a camera. All others may be secret, whatever their name.
const std::set<std::string> harmless{"cam",    "camera",  "ch",    "channel", "codec",   "format",
                                     "fps",    "height",  "id",    "profile", "quality", "resolution",
                                     "stream", "subtype", "track", "video",   "width"};

std::string lower(const std::string& text) {
  gchar* small = g_ascii_strdown(text.data(), gssize(text.size()));
  const std::string result(small, text.size());
  g_free(small);
  return result;
}

/// Whether a location is a URI of something other than a file on this machine.
bool is_remote(const std::string& location) {
  const auto scheme = location.find("://");
  return scheme != npos && location.find(':') == scheme && gst_uri_is_valid(location.c_str()) &&
         lower(location.substr(0, scheme)) != "file";
}

std::string after_scheme(const std::string& location) { return location.substr(location.find("://") + 3); }

/// Whether a text begins with a host such as [::1]:554, so that an @ after it belongs to the path.
bool has_address(const std::string& rest) {
  return g_regex_match_simple("^\\[[^]/?#@]*\\](:[0-9]*)?([/?#]|$)", rest.c_str(), G_REGEX_RAW, GRegexMatchFlags(0));
}

/// The number of characters before the @ that follows a user; npos if there is none. A user may contain any character,
/// so it ends at the last @.
std::size_t user_length(const std::string& rest) {
  const auto at = rest.rfind('@');
  return at == npos || has_address(rest) || rest.find_first_of(":@") > rest.find_first_of("/?#") ? npos : at;
}

/// Whether a text begins with a host and a port, so that an @ after them belongs to the path.
bool has_port(const std::string& rest) {
  return g_regex_match_simple("^[^/?#@]*:[0-9]+[/?#]", rest.c_str(), G_REGEX_RAW, GRegexMatchFlags(0));
}

/// The `user:password` of a URI, or an empty string.
std::string user_of(const std::string& location) {
  if (!is_remote(location)) return {};
  const std::string rest = after_scheme(location);
  const auto length = user_length(rest);
  return length == npos || has_port(rest) ? std::string() : rest.substr(0, length);
}

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const auto end = text.find_first_of(separators, begin);
    parts.push_back(text.substr(begin, end == npos ? npos : end - begin));
    if (end == npos) return parts;
    begin = end + 1;
  }
}

bool is_plain(const std::string& text) {
  return text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return g_ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
         });
}

/// A query parameter, without its value if that may be secret.
std::string shown_parameter(const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals), value = equals == npos ? "" : text.substr(equals + 1);
  if (text.empty() || (harmless.count(lower(name)) && is_plain(value))) return text;
  return equals != npos && is_plain(name) && g_ascii_isalpha(name[0]) ? name + '=' + secret : secret;
}

/// Whether a part of a path has a password, as in the paths of some recorders: /user=me_password=secret_channel=1
bool holds_password(const std::string& part) {
  const std::string small = lower(part);
  for (const char* word : {"user", "pass", "pwd", "token", "key"})
    if (const auto found = small.find(word); found != npos && small.find('=', found) != npos) return true;
  return false;
}

/// The parts between the host and the fragment of a URI: its path, and the parameters of its query.
struct Parts {
  std::vector<std::string> path, parameters;
  bool has_query;
};
Parts parts_of(const std::string& rest) {
  const std::string whole = rest.substr(0, rest.find('#'));
  const auto query = whole.find('?');
  return {split(whole.substr(0, query), "/"), split(query == npos ? "" : whole.substr(query + 1), "&;"), query != npos};
}

/// The secrets of a location outside URIs, the longest first.
std::vector<std::string> secrets_of(const std::string& location) {
  std::vector<std::string> secrets{user_of(location), user_of(opened_uri(location))};
  const std::string rest = after_scheme(location);
  if (shown_location(location) == location.substr(0, location.find("://") + 3) + secret) secrets.push_back(rest);
  const Parts parts = parts_of(rest);
  std::copy_if(parts.path.begin(), parts.path.end(), std::back_inserter(secrets), holds_password);
  for (const std::string& parameter : parts.parameters) {
    if (shown_parameter(parameter) == parameter) continue;
    const auto equals = parameter.find('=');
    const std::string value = equals == npos ? "" : parameter.substr(equals + 1);
    gchar* plain = g_uri_unescape_string(value.c_str(), nullptr);
    secrets.insert(secrets.end(), {parameter, value, plain ? plain : ""});
    g_free(plain);
  }
  secrets.erase(
      std::remove_if(secrets.begin(), secrets.end(), [](const auto& each) { return each.size() < short_text; }),
      secrets.end());
  std::sort(secrets.begin(), secrets.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return secrets;
}

void replace_all(std::string& text, const std::string& part, const std::string& by) {
  if (part.empty()) return;
  for (std::size_t found = 0; (found = text.find(part, found)) != npos; found += by.size())
    text.replace(found, part.size(), by);
}

/// The position of the options of a URI: a fragment, which no server gets. A fragment with other names belongs to the
/// URI.
std::size_t options_begin(const std::string& location) {
  const auto hash = location.rfind('#');
  if (!is_remote(location) || hash == npos) return npos;
  const char* const pattern = "^(every|certificate)=[^&#/?@]*(&(every|certificate)=[^&#/?@]*)*$";
  const bool known = g_regex_match_simple(pattern, location.c_str() + hash + 1, G_REGEX_RAW, GRegexMatchFlags(0));
  return known ? hash : npos;
}

/// Replaces each % that does not begin an escape with %25.
std::string with_whole_escapes(std::string text) {
  const auto is_digit = [&](std::size_t at) { return at < text.size() && g_ascii_isxdigit(text[at]); };
  for (std::size_t found = 0; (found = text.find('%', found)) != npos; ++found)
    if (!is_digit(found + 1) || !is_digit(found + 2)) text.insert(found + 1, "25");
  return text;
}

/// Replaces each URI in a text with its displayed form.
void show_uris(std::string& text) {
  for (std::size_t colon = 0; (colon = text.find("://", colon)) != npos;) {
    std::size_t begin = colon;
    while (begin > 0 && (g_ascii_isalnum(text[begin - 1]) || std::string("-+.").find(text[begin - 1]) != npos)) --begin;
    const auto end = std::min(text.find_first_of(" \t\r\n\"<>", colon), text.size());
    const std::string shown = shown_location(text.substr(begin, end - begin));
    text.replace(begin, end - begin, shown);
    colon = std::max(begin + shown.size(), colon + 3);
  }
}

}  // namespace

std::map<std::string, std::string> options_of(const std::string& location) {
  std::map<std::string, std::string> options;
  const auto begin = options_begin(location);
  if (begin == npos) return options;
  for (const std::string& option : split(location.substr(begin + 1), "&"))
    options[option.substr(0, option.find('='))] = option.substr(option.find('=') + 1);
  return options;
}

std::string opened_uri(const std::string& text) {
  const std::string location = text.substr(0, options_begin(text)), user = user_of(location);
  if (user.empty() && gst_uri_is_valid(location.c_str()) && location.find("://") == location.find(':')) return location;
  gchar* part = user.empty() ? gst_filename_to_uri(location.c_str(), nullptr)
                             : g_uri_escape_string(with_whole_escapes(user).c_str(), "%:!$&'()*+,;=", FALSE);
  const std::string uri = part ? part : "";
  g_free(part);
  return user.empty() ? uri : std::string(location).replace(location.find("://") + 3, user.size(), uri);
}

std::string shown_location(const std::string& location) {
  if (!is_remote(location)) return location;
  const std::string scheme = location.substr(0, location.find("://") + 3);
  std::string rest = after_scheme(location);
  if (const auto length = user_length(rest); length != npos) {
    const auto at = rest.find('@');
    if (has_port(rest) || (at < length && rest.find('?', at) < length)) return scheme + secret;
    rest.erase(0, length + 1);
  }
  const Parts parts = parts_of(rest);
  std::string shown = scheme, separator;
  for (const std::string& part : parts.path)
    shown += std::exchange(separator, "/") + (holds_password(part) ? secret : part);
  separator = "?";
  if (parts.has_query)
    for (const std::string& parameter : parts.parameters)
      shown += std::exchange(separator, "&") + shown_parameter(parameter);
  return shown;
}

std::string without_secrets(std::string text, const std::string& location) {
  if (is_remote(location)) {
    for (const std::string& uri : {location, opened_uri(location)}) replace_all(text, uri, shown_location(location));
    for (const std::string& each : secrets_of(location)) replace_all(text, each, secret);
  }
  show_uris(text);
  return text;
}
