// SPDX-License-Identifier: LGPL-2.1-or-later
// URIs of inputs: the form for GStreamer, and the form to display. User, password and most values of a query are
// secrets, which must not appear in lines, file names and errors.
#pragma once

#include <map>
#include <string>

/// The options at the end of a URI, by name: #every=2&certificate=any.
std::map<std::string, std::string> options_of(const std::string& location);

/// A location as a URI without options. Characters of the user that would end the host for elements are escaped, and so
/// is a % that does not begin an escape. Empty if it is neither a URI nor a file name.
std::string opened_uri(const std::string& location);

/// A location to display: a file unchanged; a URI without user, password and fragment, and with *** for the values of
/// its query that may be secret. If it is unclear which part is the password, only the scheme is left.
std::string shown_location(const std::string& location);

/// The text of another program, such as an element's error, without the secrets of a location and of each URI in it.
std::string without_secrets(std::string text, const std::string& location);
