package serving_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

// TestMain is a server, where the variable says which: it listens at the address of its argument.
func TestMain(m *testing.M) {
	mood := os.Getenv("SERVING_TEST_MOOD")
	switch mood {
	case "":
		os.Exit(m.Run())
	case "ends":
		fmt.Println("good bye")
		os.Exit(0)
	case "fails":
		fmt.Println("last words")
		os.Exit(3)
	case "hangs":
		fmt.Println("loading")
		time.Sleep(time.Minute)
	}
	mux := http.NewServeMux()
	mux.Handle("/", (&stub{}).Handler())
	mux.HandleFunc("/end", func(http.ResponseWriter, *http.Request) { os.Exit(5) })
	if mood == "listless" {
		mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) })
	}
	time.AfterFunc(100*time.Millisecond, func() { fmt.Println("up and running") })
	fmt.Println(http.ListenAndServe(os.Args[1], mux))
}

func TestStart(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, tt := range []struct {
		mood, ready string
		timeout     time.Duration
		err         string // "": it starts
		reason      string
	}{
		{"right", "", time.Minute, "", "it answers"},
		{"right", "up and running", time.Minute, "", "its log says so"},
		{"listless", "up and running", time.Minute, "", "its log says so, and it has no list"},
		{"listless", "", 2 * time.Second, "was not ready within", "without a mark it has to answer"},
		{"right", "another mark", 2 * time.Second, "was not ready within", "its log does not say so"},
		{"hangs", "", 2 * time.Second, "loading", "it is late, and its log is shown"},
		{"fails", "", time.Minute, "exited with code 3", "it dies"},
		{"ends", "", time.Minute, "the server ended by itself, without an error", "it ends"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel() // most of them wait
			port, err := serving.FreePort()
			require.NoError(t, err)
			address := fmt.Sprintf("127.0.0.1:%d", port)
			log := filepath.Join(t.TempDir(), "log")
			require.NoError(t, os.WriteFile(log, []byte("another mark, of an earlier run"), 0o600))
			// The race detector sleeps for a second where a program ends.
			env := append(os.Environ(), "SERVING_TEST_MOOD="+tt.mood, "GORACE=atexit_sleep_ms=0")
			s, err := serving.Start(t.Context(), serving.Program{Command: []string{self, address}, Env: env, LogFile: log,
				URL: "http://" + address, Ready: tt.ready, Timeout: tt.timeout})
			if tt.err != "" {
				assert.ErrorContains(t, err, tt.err, tt.reason)
				return
			}
			require.NoError(t, err, tt.reason)
			assert.NoError(t, s.Died(), "%s: it is alive", tt.reason)
			if tt.mood == "right" {
				out, err := serving.Run(t.Context(), servingtest.Cases(2), serving.Options{URL: s.URL})
				require.NoError(t, err)
				assert.Empty(t, out.Error, tt.reason)
			}
			if tt.ready != "" {
				http.Get(s.URL + "/end")
				assert.ErrorContains(t, s.Died(), "exited with code 5", "%s: it ends by itself", tt.reason)
			}
			s.Stop()
			_, err = http.Get(s.URL)
			assert.Error(t, err, "%s: it is stopped", tt.reason)
		})
	}
}
