package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/secret"
	"github.com/goparity/goparity/internal/supervise"
)

// Program is a server that is started.
type Program struct {
	Command []string // the program and its arguments
	Dir     string   // in which it runs
	Env     []string // the complete environment
	LogFile string   // gets what it prints
	URL     string   // where it will listen
	Ready   string   // what its log says once it can be asked; "" to ask it until it answers
	Timeout time.Duration
}

// Server is a program that answers. Stop ends it.
type Server struct {
	URL  string
	stop context.CancelCauseFunc
	done chan struct{}
	err  error // of the program; valid once done is closed
	log  string
}

var errStop = errors.New("the server is not needed any more")

// Start starts a program and returns when it is ready. It lives until Stop, or until ctx is done,
// and never longer than this process (see package supervise). The error says how it ended, or that
// it was not ready in time; it is one of supervise's where the program died or was late.
func Start(ctx context.Context, p Program) (*Server, error) {
	limit := cmp.Or(p.Timeout, DefaultStart)
	inner, stop := context.WithCancelCause(ctx)
	s := &Server{URL: p.URL, stop: stop, done: make(chan struct{}), log: p.LogFile}
	begun := time.Now()
	// What a server of an earlier run wrote must not count.
	if err := os.WriteFile(p.LogFile, nil, 0o600); err != nil {
		stop(nil)
		return nil, fmt.Errorf("serving: %w", err)
	}
	go func() {
		defer close(s.done)
		s.err = supervise.Run(inner, supervise.Command{Path: p.Command[0], Args: p.Command[1:], Dir: p.Dir, Env: p.Env,
			LogFile: p.LogFile, Grace: stopGrace, Secrets: secret.FromEnv(p.Env)})
	}()
	tick := time.NewTicker(pollTime)
	defer tick.Stop()
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case <-s.done:
			stop(nil)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("serving: %w", s.err)
			}
			return nil, s.died()
		case <-late.C:
			tail := logTail(p.LogFile)
			s.Stop()
			return nil, &supervise.ExitError{Name: p.Command[0], After: time.Since(begun), LogFile: p.LogFile, Tail: tail,
				Err: fmt.Errorf("the server was not ready within %s: %w", limit, context.DeadlineExceeded)}
		case <-tick.C:
			if s.ready(inner, p.Ready) {
				return s, nil
			}
		}
	}
}

// died says how a server ended that should answer.
func (s *Server) died() error {
	if s.err == nil {
		return fmt.Errorf("serving: the server ended by itself, without an error, before it was asked to (log: %s)", s.log)
	}
	return fmt.Errorf("serving: the server ended: %w", s.err)
}

// ready reports whether the log says so, and the server takes connections.
func (s *Server) ready(ctx context.Context, mark string) bool {
	if mark != "" && !strings.Contains(readLog(s.log), mark) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return false
	}
	if mark != "" {
		host := r.URL.Host
		if r.URL.Port() == "" {
			host = net.JoinHostPort(r.URL.Hostname(), map[string]string{"http": "80", "https": "443"}[r.URL.Scheme])
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	}
	c, err := newClient(s.URL, time.Second)
	if err == nil {
		_, err = c.list(ctx)
	}
	return err == nil
}

// Died returns how the server ended by itself, nil if it is alive. One that has just hung up gets a
// moment to end.
func (s *Server) Died() error {
	select {
	case <-s.done:
		return s.died()
	case <-time.After(dyingTime):
		return nil
	}
}

// Stop ends the server with all that it started, and waits for that.
func (s *Server) Stop() {
	s.stop(errStop)
	<-s.done
}

// readLog is the whole log, as far as supervise keeps it.
func readLog(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(data)
}

// logTail is the end of a log.
func logTail(name string) []string {
	const most = 30
	lines := strings.Split(strings.TrimRight(readLog(name), "\n"), "\n")
	return lines[max(0, len(lines)-most):]
}

// FreePort returns a port of the loopback interface that nothing listens on.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("serving: there is no free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
