package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
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

// Start starts a program and returns when it is ready. It lives until Stop, or until ctx is done,
// and never longer than this process (see package supervise). The error says how it ended, or that
// it was not ready in time; it is one of supervise's where the program died or was late.
func Start(ctx context.Context, p Program) (*Server, error) {
	// What a server of an earlier run wrote must not count.
	if err := os.WriteFile(p.LogFile, nil, 0o600); err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	limit, begun := cmp.Or(p.Timeout, DefaultStart), time.Now()
	inner, stop := context.WithCancelCause(ctx)
	s := &Server{URL: p.URL, stop: stop, done: make(chan struct{}), log: p.LogFile}
	go func() {
		defer close(s.done)
		s.err = supervise.Run(inner, supervise.Command{Path: p.Command[0], Args: p.Command[1:], Dir: p.Dir, Env: p.Env,
			LogFile: p.LogFile, Grace: stopGrace, Secrets: sanitize.SecretsOf(p.Env)})
	}()
	for {
		select {
		case <-s.done:
			stop(nil)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("serving: %w", s.err)
			}
			return nil, s.died()
		case <-time.After(pollTime):
		}
		if s.ready(inner, p.Ready) {
			return s, nil
		}
		if time.Since(begun) > limit {
			lines := strings.Split(strings.TrimRight(s.readLog(), "\n"), "\n")
			s.Stop()
			return nil, &supervise.ExitError{Name: p.Command[0], After: time.Since(begun), LogFile: p.LogFile,
				Tail: lines[max(0, len(lines)-shownLines):],
				Err:  fmt.Errorf("the server was not ready within %s: %w", limit, context.DeadlineExceeded)}
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

// ready reports whether the log says so and the server takes connections, or without a mark whether it answers.
func (s *Server) ready(ctx context.Context, mark string) bool {
	c, err := newClient(s.URL, time.Second)
	if err != nil || mark != "" && !strings.Contains(s.readLog(), mark) {
		return false
	}
	_, err = c.list(ctx)
	e, is := errors.AsType[*answerError](err)
	return err == nil || mark != "" && is && !e.gone
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
	s.stop(errors.New("the server is not needed any more"))
	<-s.done
}

// readLog is the whole log, as far as supervise keeps it; nothing if it cannot be read.
func (s *Server) readLog() string {
	data, _ := os.ReadFile(s.log)
	return string(data)
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
