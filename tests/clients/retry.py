"""Checks the client for Python. Arguments: the folder of its file, and the server's address."""

import email.utils
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, sys.argv[1])
from open_with_retry import open_with_retry, retry_after

url = f"http://{sys.argv[2]}/retry"
request = urllib.request.Request(url, b"hello", {"x-client": "python"}, method="PUT")

start = time.monotonic()
for _ in range(4):
    with open_with_retry(request) as response:
        assert (response.status, response.read()) == (200, b"hello")
assert time.monotonic() - start >= 1, "the client waited"

# The wait is longer than half a second.
try:
    for _ in range(4):
        open_with_retry(request, cap=0.5).close()
except urllib.error.HTTPError as error:
    assert error.code == 429
else:
    raise AssertionError("the server refused nothing")

assert 50 < retry_after(email.utils.formatdate(time.time() + 60, usegmt=True)) <= 60
past = "Wed, 21 Oct 2015 07:28:00 GMT"
assert [retry_after(value) for value in ("7", past, "soon", "²", None)] == [7, 0, 0, 0, 0]
print("the client for Python waits and retries")
