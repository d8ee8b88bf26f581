// Checks the client for Go. The environment has the address of the server.
package retry

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func put(t *testing.T, longest time.Duration) (int, string) {
	request, err := http.NewRequest("PUT", "http://"+os.Getenv("ADDRESS")+"/retry", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-client", "go")
	response, err := Do(http.DefaultClient, request, 4, longest)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestClientWaitsAndRetries(t *testing.T) {
	start := time.Now()
	for i := 0; i < 4; i++ {
		if status, body := put(t, 30*time.Second); status != 200 || body != "hello" {
			t.Fatal(status, body)
		}
	}
	if time.Since(start) < time.Second {
		t.Fatal("the client did not wait")
	}
	for i := 0; i < 4; i++ {
		if status, _ := put(t, 500*time.Millisecond); status == 429 {
			return
		}
	}
	t.Fatal("the server refused nothing")
}
