// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gst/gst.h>

#include "examples/motion-alarm/uris.hpp"
#include "tests/elements/expect.hpp"

using cudavision::test::expect;

namespace {

void expect_same(const std::string& what, const std::string& actual, const std::string& expected) {
  expect(actual == expected, what + " is " + actual + ", and not " + expected);
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  struct Row {
    const char *location, *shown, *opened;
  };
  const Row rows[] = {
      {"rtsp://me:secret@cam/x", "rtsp://cam/x", "rtsp://me:secret@cam/x"},
      {"rtsp://me:a/b?c#d@e@cam/x", "rtsp://cam/x", "rtsp://me:a%2Fb%3Fc%23d%40e@cam/x"},
      {"rtsp://me:a/b?c#d@cam/x", "rtsp://cam/x", "rtsp://me:a%2Fb%3Fc%23d@cam/x"},
      {"rtsp://me:a#%&1@*b@cam/x", "rtsp://cam/x", "rtsp://me:a%23%25&1%40*b@cam/x"},
      {"rtsp://me:50%25%@cam/x", "rtsp://cam/x", "rtsp://me:50%25%25@cam/x"},
      {"http://me:secret@cam/x?a=1#every=2", "http://cam/x?a=***", "http://me:secret@cam/x?a=1"},
      {"https://cam/x#every=0.5&certificate=any", "https://cam/x", "https://cam/x"},
      {"rtsp://me:a#every=2@cam/x", "rtsp://cam/x", "rtsp://me:a%23every=2@cam/x"},
      {"rtsp://cam/x#other=2", "rtsp://cam/x", "rtsp://cam/x#other=2"},
      {"rtsp://cam:554/x@y", "rtsp://***", "rtsp://cam:554/x@y"},
      {"rtsp://[::1]:554/x", "rtsp://[::1]:554/x", "rtsp://[::1]:554/x"},
      {"rtsp://[::1]:554/x@y", "rtsp://[::1]:554/x@y", "rtsp://[::1]:554/x@y"},
      {"rtsp://[me:secret@cam/x", "rtsp://cam/x", "rtsp://%5Bme:secret@cam/x"},
      {"rtsp://[me]:secret@cam/x", "rtsp://cam/x", "rtsp://%5Bme%5D:secret@cam/x"},
      {"http://cam/x?user=me&password=secret&channel=1", "http://cam/x?user=***&password=***&channel=1", nullptr},
      {"http://cam/x?channel=secret%20word&secret;width=9#secret", "http://cam/x?channel=***&***&width=9", nullptr},
      {"http://me:secret@cam/x?a@b", "http://***", "http://me:secret%40cam%2Fx%3Fa@b"},
      {"rtsp://cam/user=me_password=secret_channel=1/x", "rtsp://cam/***/x", nullptr},
      {"RTSP://cam/x?", "RTSP://cam/x?", nullptr},
      {"file:///clips/a?password=b", "file:///clips/a?password=b", nullptr},
      {"/clips/http://a?password=b", "/clips/http://a?password=b", "file:///clips/http://a%3Fpassword=b"},
      {"/clips/me:secret@x", "/clips/me:secret@x", "file:///clips/me:secret@x"},
  };
  for (const Row& row : rows) {
    expect_same(row.location, shown_location(row.location), row.shown);
    const std::string opened = opened_uri(row.location);
    if (opened.rfind("file:///clips/http:", 0) != 0)
      expect_same(row.location, opened, row.opened ? row.opened : row.location);
  }

  using Options = std::map<std::string, std::string>;
  for (const auto& [uri, options] :
       {std::pair{"http://cam/x#every=2&certificate=any", Options{{"every", "2"}, {"certificate", "any"}}},
        {"http://cam/x#every=", Options{{"every", ""}}},
        {"http://cam/x#other=2&every=2", Options{}},
        {"http://me:a#every=2@cam/x", Options{}},
        {"/clips/x#every=2", Options{}}})
    expect(options_of(uri) == options, std::string("the options of ") + uri);

  const std::string location = "http://me:se/cret@cam/x?user=admin&password=pass%20word&channel=1";
  for (const auto& [text, without] :
       {std::pair{"cannot open " + location + " now", "cannot open http://cam/x?user=***&password=***&channel=1 now"},
        {"no host me:se%2Fcret@cam", "no host ***@cam"},
        {"password=pass%20word is wrong", "*** is wrong"},
        {"\"pass word\" of admin", "\"***\" of ***"},
        {"redirected to <https://other:word@host/y?token=abc>", "redirected to <https://host/y?token=***>"},
        {"Not Found: channel 1", "Not Found: channel 1"}})
    expect_same(text, without_secrets(text, location), without);
  expect_same("a text about a file", without_secrets("/clips/a@b: no://thing", "/clips/a@b"), "/clips/a@b: no://thing");
  return cudavision::test::exit_status();
}
