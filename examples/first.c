// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints when an object enters and leaves the picture of a clip:  first CLIP
#include <gst/gst.h>

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch ("uridecodebin name=source caps=video/x-raw(ANY) expose-all-streams=false ! videoconvert ! "
      "cudadiff preset=indoor output=passthrough ! fakesink", &error);
  gchar *uri = error || argc != 2 ? NULL : gst_filename_to_uri (argv[1], &error);
  if (!uri) {
    g_printerr ("%s\n", error ? error->message : "usage: first CLIP");
    return 1;
  }
  GstElement *source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  g_object_set (source, "uri", uri, NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);

  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessageType type;
  do {
    GstMessage *message = gst_bus_timed_pop_filtered (bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ELEMENT | GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
    const GstStructure *event = gst_message_get_structure (message);
    guint64 time;
    guint id;
    type = GST_MESSAGE_TYPE (message);
    if (type == GST_MESSAGE_ERROR) {
      gst_message_parse_error (message, &error, NULL);
      g_printerr ("%s\n", error->message);
    } else if (type == GST_MESSAGE_ELEMENT && gst_structure_has_name (event, "cudadiff")
        && gst_structure_get_uint (event, "id", &id) && gst_structure_get_uint64 (event, "stream-time", &time))
      g_print ("%.2f s: object %u: %s\n", (double) time / GST_SECOND, id, gst_structure_get_string (event, "event"));
    gst_message_unref (message);
  } while (type == GST_MESSAGE_ELEMENT);

  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (source);
  gst_object_unref (pipeline);
  g_free (uri);
  return error != NULL;
}
