"""What the applications of these tests answer: what they were told of the request."""

import json


def told(method, script, path, query, scheme, body, fields):
    seen = {name: value for name, value in sorted(fields.items()) if name.startswith("x-")}
    return json.dumps(
        {"method": method, "script": script, "path": path, "query": query, "scheme": scheme, "body": len(body), "fields": seen},
        sort_keys=True,
    ).encode()
