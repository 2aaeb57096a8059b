// SPDX-License-Identifier: LGPL-2.1-or-later
#include "troubles.hpp"

#include <gio/gio.h>

namespace {

constexpr guint patience = 5;  // seconds for a connection

std::string take(gchar* text) {
  const std::string result = text ? text : "";
  g_free(text);
  return result;
}

/// The server's answer instead of a stream, from the details of rtspsrc and souphttpsrc; empty if there is none.
std::string refusal_in(const std::string& details) {
  GRegex* regex =
      g_regex_new("^(?:Error \\((?<c>\\d{3})\\): (?<r>.*)|(?<s>[^(\\n]+) \\((?<d>[45]\\d\\d)\\)(?:[,.].*)?)$",
                  GRegexCompileFlags(G_REGEX_MULTILINE | G_REGEX_RAW), GRegexMatchFlags(0), nullptr);
  GMatchInfo* match = nullptr;
  std::string code, reason;
  for (g_regex_match(regex, details.c_str(), GRegexMatchFlags(0), &match); g_match_info_matches(match);
       g_match_info_next(match, nullptr)) {
    code = take(g_match_info_fetch_named(match, "c")) + take(g_match_info_fetch_named(match, "d"));
    reason = take(g_match_info_fetch_named(match, "r")) + take(g_match_info_fetch_named(match, "s"));
  }
  g_match_info_free(match);
  g_regex_unref(regex);
  if (code.empty()) return {};
  const std::string answer = code + ' ' + reason;
  return code == "401" || code == "407" ? "wrong user or password (" + answer + ')' : "the server answers " + answer;
}

/// The URI of an element, or of the element that contains it; empty if there is none.
std::string uri_of(GstObject* object) {
  for (; object; object = GST_OBJECT_PARENT(object))
    if (g_object_class_find_property(G_OBJECT_GET_CLASS(object), "uri")) {
      gchar* uri = nullptr;
      g_object_get(object, "uri", &uri, nullptr);
      return take(uri);
    }
  return {};
}

bool checks_certificates(GstObject* source) {
  const auto has = [source](const char* name) {
    return g_object_class_find_property(G_OBJECT_GET_CLASS(source), name) != nullptr;
  };
  gboolean strict = TRUE;
  guint flags = 1;
  if (has("ssl-strict")) g_object_get(source, "ssl-strict", &strict, nullptr);
  if (has("tls-validation-flags")) g_object_get(source, "tls-validation-flags", &flags, nullptr);
  return strict && flags;
}

/// Connects like the source, and explains why this fails.
std::string about_connection(const std::string& uri, GstObject* source, const std::string& otherwise) {
  gchar *scheme = nullptr, *host = nullptr;
  gint port = -1;
  const bool valid = g_uri_split_network(uri.c_str(), G_URI_FLAGS_NONE, &scheme, &host, &port, nullptr);
  const std::string kind = take(scheme), place = take(host);
  const bool secure = kind == "https" || kind == "rtsps";
  if (!valid || (!secure && kind != "http" && kind != "rtsp")) return otherwise;
  if (port <= 0) port = kind == "http" ? 80 : kind == "https" ? 443 : kind == "rtsp" ? 554 : 322;
  GSocketClient* client = g_socket_client_new();
  g_socket_client_set_timeout(client, patience);
  g_socket_client_set_tls(client, secure && checks_certificates(source));
  GError* error = nullptr;
  GSocketConnection* connection =
      g_socket_client_connect_to_host(client, place.c_str(), guint16(port), nullptr, &error);
  std::string text = "the connection to the server was lost";
  if (g_error_matches(error, G_TLS_ERROR, G_TLS_ERROR_BAD_CERTIFICATE))
    text = "its certificate is not trusted; #certificate=any at the end of the URI accepts any";
  else if (error)
    text = error->message;
  g_clear_error(&error);
  g_clear_object(&connection);
  g_object_unref(client);
  return text;
}

}  // namespace

std::string trouble_of(GstMessage* message) {
  GError* error = nullptr;
  gchar* debug = nullptr;
  const bool fatal = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
  if (fatal)
    gst_message_parse_error(message, &error, &debug);
  else
    gst_message_parse_warning(message, &error, &debug);
  const std::string details = take(debug);
  std::string text = error->message;
  const bool missing = g_error_matches(error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN);
  const std::string refusal = error->domain == GST_RESOURCE_ERROR ? refusal_in(details) : "";
  // souphttpsrc requests the rest of a live stream.
  const bool silent = g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SEEK);
  g_clear_error(&error);
  if (silent) return "no data arrived for too long, or the connection to the server was lost";
  if (missing) return "there is no video in it, or the plugin that decodes it is missing";
  if (!refusal.empty()) return refusal;
  const bool unconnected =
      details.find("Failed to connect") != std::string::npos || details.find("reason error (-5)") != std::string::npos;
  const std::string uri = fatal && unconnected ? uri_of(GST_MESSAGE_SRC(message)) : "";
  if (!uri.empty()) return about_connection(uri, GST_MESSAGE_SRC(message), text);
  // Only the last line of the details is for users.
  const auto line = details.rfind('\n');
  if (line != std::string::npos && line + 1 < details.size()) text += " (" + details.substr(line + 1) + ')';
  return text;
}
