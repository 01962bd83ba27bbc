"""The application of uploads that also tells how many of its threads are free."""

import meeting
import upload_wsgi


def application(environ, start_response):
    if not environ["PATH_INFO"].startswith("/hold"):
        return upload_wsgi.application(environ, start_response)
    body = meeting.hold(int(environ["QUERY_STRING"]))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
