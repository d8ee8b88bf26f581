package retry

import (
	"math/rand"
	"net/http"
	"strconv"
	"time"
)

// Do sends a request, and retries while the server refuses. Do waits at most longest between two attempts.
func Do(client *http.Client, request *http.Request, attempts int, longest time.Duration) (*http.Response, error) {
	for backoff := 500 * time.Millisecond; ; backoff *= 2 {
		response, err := client.Do(request)
		if err != nil || response.StatusCode != 429 && response.StatusCode != 503 {
			return response, err
		}
		seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
		wait := time.Duration(seconds)*time.Second + time.Duration(rand.Int63n(int64(backoff)))
		attempts--
		if attempts <= 0 || wait > longest || request.Body != nil && request.GetBody == nil {
			return response, nil
		}
		response.Body.Close()
		if request.GetBody != nil {
			request.Body, _ = request.GetBody()
		}
		time.Sleep(wait)
	}
}
