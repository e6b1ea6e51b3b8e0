package serving_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

// What cannot be judged is an error, whatever the other answers are, and is not asked again.
func TestAnswersThatCannotBeJudged(t *testing.T) {
	says := func(status int, body string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for _, c := range []struct {
		answer func(w http.ResponseWriter)
		error  string
		reason string
	}{
		{servingtest.HangUp, "the answer ended after 16 bytes: unexpected EOF", "it dies in the middle of an answer"},
		{says(500, "Internal Server Error"), "500 Internal Server Error: Internal Server Error", "it fails"},
		{says(503, `{"error":{"message":"busy"}}`), "503 Service Unavailable: busy", "it has no time"},
		{says(429, `{"error":"slow down"}`), "429 Too Many Requests: \"slow down\"", "it refuses"},
		{says(404, `{"detail":"Not Found"}`), "404 Not Found: \"Not Found\"", "it does not know the path"},
		{says(302, ""), "302 Found: (empty)", "it sends elsewhere"},
		{says(200, "<html><body>proxy</body></html>"), "cannot be judged: invalid character '<' looking for beginning of value: <html>", "HTML"},
		{says(200, "\x00\xff\xfe garbage"), "cannot be judged: invalid character", "garbage"},
		{says(200, ""), "cannot be judged: unexpected end of JSON input: (empty)", "nothing"},
		{says(200, `{"error":{"message":"out of memory"}}`), "it is an error in place of choices", "an error with the status 200"},
		{says(200, `{"choices":[]}`), "it has no choices", "no choices"},
		{says(200, `{"choices":[{"index":0}]}`), "it has neither text nor message", "an empty choice"},
		{says(200, `{"choices":[{"text":"a","token_ids":["x"]}]}`), "cannot unmarshal string", "ids that are none"},
		{says(200, `{"choices":[{"text":"a","token_ids":[-1]}]}`), "-1 is no token id", "a negative id"},
		{says(200, `{"choices":[{"text":"a","finish_reason":"abort"}]}`), `finish_reason is "abort"`, "it gave up"},
		{says(200, `{"choices":[{"text":["a"]}]}`), "text is no text", "a list in place of a text"},
		{says(200, `{"choices":[{"text":"`+strings.Repeat("a", 17<<20)+`"}]}`), "the answer has more than 16 MiB", "without end"},
	} {
		// The answer comes for the third request, alone, or for the ninth, among others.
		for _, at := range []int{2, 9} {
			asked := map[int]int{}
			s := &stub{Answer: func(w http.ResponseWriter, r *request, n, busy int) bool {
				if n == at {
					asked[n]++
					c.answer(w)
				}
				return n == at
			}}
			out := judge(t, s, servingtest.Cases(tokensOfCases), serving.Options{})
			assert.Equal(t, report.Error, out.Verdict, c.reason)
			assert.Contains(t, out.Error, c.error, c.reason)
			assert.Nil(t, out.First, "%s: nothing is guessed from the rest", c.reason)
			assert.Empty(t, out.Causes, c.reason)
			assert.Equal(t, 1, asked[at], c.reason)
		}
	}
}

func TestServersThatCannotBeAsked(t *testing.T) {
	trickles := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}
	says := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	for _, c := range []struct {
		handler       http.HandlerFunc
		error, reason string
	}{
		{trickles, "no answer within 100ms: give it more time with --timeout", "its answer does not end"},
		{says("<html>"), "/v1/models: the answer cannot be judged", "HTML"},
		{says(`{"data":[]}`), "/v1/models names no model", "no model"},
	} {
		server := httptest.NewServer(c.handler)
		out, err := serving.Run(t.Context(), servingtest.Cases(2), serving.Options{URL: server.URL, Timeout: 100 * time.Millisecond})
		server.Close()
		require.NoError(t, err, c.reason)
		assert.Equal(t, report.Error, out.Verdict, c.reason)
		assert.Contains(t, out.Error, c.error, c.reason)
	}
	_, err := serving.Run(t.Context(), nil, serving.Options{URL: "http://127.0.0.1:1"})
	assert.ErrorContains(t, err, "there is no case")
	for _, opt := range []serving.Options{{URL: "ftp://a"}, {URL: "http://"}, {URL: "a:b:c"}} {
		_, err := serving.Run(t.Context(), servingtest.Cases(2), opt)
		assert.ErrorContains(t, err, "is no address of a server: want http://HOST:PORT")
	}
	for _, opt := range []serving.Options{{Timeout: -1}, {Parallel: -1}, {Draws: -1}} {
		_, err := serving.Run(t.Context(), servingtest.Cases(2), opt)
		assert.ErrorContains(t, err, "want more than none")
	}
}

func TestStoppedByContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &stub{Answer: func(w http.ResponseWriter, r *request, n, busy int) bool { cancel(); return false }}
	_, err := serving.Run(ctx, servingtest.Cases(2), serving.Options{URL: s.Start(t)})
	assert.ErrorIs(t, err, context.Canceled)
}

// Each way of writing an address is understood, and the key is sent.
func TestAddresses(t *testing.T) {
	t.Setenv(serving.KeyVariable, "s3cret")
	s := &stub{}
	url := s.Start(t)
	for _, u := range []string{url, url + "/", url + "/v1", url + "/v1/"} {
		out, err := serving.Run(t.Context(), servingtest.Cases(2)[:1], serving.Options{URL: u})
		require.NoError(t, err)
		assert.Equal(t, report.Pass, out.Verdict, u)
	}
	var key string
	guard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { key = r.Header.Get("Authorization") }))
	defer guard.Close()
	_, err := serving.Run(t.Context(), servingtest.Cases(2), serving.Options{URL: guard.URL})
	require.NoError(t, err)
	assert.Equal(t, "Bearer s3cret", key)
}
