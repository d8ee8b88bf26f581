import email.utils
import random
import time
import urllib.error
import urllib.request


def retry_after(value):
    """Returns the seconds of `Retry-After`, which is a number or a date."""
    if value and value.isascii() and value.isdecimal():
        return int(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def open_with_retry(request, attempts=4, base=0.5, cap=30.0):
    """Calls `urlopen`, and calls again while the server refuses. Waits at most `cap` seconds between two attempts."""
    for attempt in range(1, attempts + 1):
        try:
            return urllib.request.urlopen(request, timeout=30)
        except urllib.error.HTTPError as error:
            jitter = random.uniform(0, min(cap, base * 2 ** (attempt - 1)))
            wait = retry_after(error.headers.get("Retry-After")) + jitter
            if error.code not in (429, 503) or attempt == attempts or wait > cap:
                raise
            error.close()
        time.sleep(wait)
