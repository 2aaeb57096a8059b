// SPDX-License-Identifier: LGPL-2.1-or-later
// URIs of inputs: the form that GStreamer gets, and the form that people may see. User, password and most values of a
// query are secrets, which must not come into lines, names of files and errors.
#pragma once

#include <map>
#include <string>

/// The options at the end of a URI, by name: #every=2&certificate=any.
std::map<std::string, std::string> options_of(const std::string& location);

/// A location as a URI without options. Characters of the user that would end the host for elements are escaped, and so
/// is a % that begins no escape. Empty if it is no URI and no file name.
std::string opened_uri(const std::string& location);

/// A location to display: a file as it is; a URI without user, password and fragment, and with *** for the values of
/// its query that may be secret. Where it is not clear which part is the password, only the scheme is left.
std::string shown_location(const std::string& location);

/// A text of another program, such as an error of an element, without the secrets of a location and of each URI in it.
std::string without_secrets(std::string text, const std::string& location);
