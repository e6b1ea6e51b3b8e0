package serving

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
)

// KeyVariable is the environment variable with the key of servers that want one.
const KeyVariable = "PARITY_API_KEY"

// client asks one server. It is safe for concurrent use.
type client struct {
	base    string // without /v1
	http    *http.Client
	timeout time.Duration
	model   string
	longest int // tokens of a prompt and its answer, 0 if the server does not say

	mu      sync.Mutex
	forms   map[string]form // by path, once an answer came
	notes   []string
	drafted drafting // by the answers
}

// answerError says that a request got no answer that can be judged.
type answerError struct {
	Status int // of HTTP; 0 if there was none
	What   string
	Err    error
	gone   bool // the server may be gone: others need not be asked
}

func (e *answerError) Error() string { return e.What }
func (e *answerError) Unwrap() error { return e.Err }

// newClient returns a client for the server at an address such as http://127.0.0.1:8000, with or
// without /v1. Each request has a connection of its own: over one that the server has closed, Go
// would send a request again without a word.
func newClient(address string, timeout time.Duration) (*client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("serving: %q is no address of a server: want http://HOST:PORT", address)
	}
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"), "/v1"), "/")
	return &client{base: base, timeout: timeout, forms: map[string]form{}, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
			DialContext: (&net.Dialer{Timeout: min(timeout, dialTime)}).DialContext},
	}}, nil
}

// note remembers what a reader should know, once.
func (c *client) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

const models = "/v1/models"

// served is a model that a server names.
type served struct {
	ID       string `json:"id"`
	MaxModel int    `json:"max_model_len"`
}

// list asks for the models that are served; none of a server that has no such list: MLX's sends nothing
// where the hub's cache is not there.
func (c *client) list(ctx context.Context) ([]served, error) {
	data, err := c.send(ctx, models, nil, nil)
	if e, is := errors.AsType[*answerError](err); is && e.Status == http.StatusNotFound || err == nil && len(data) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []served `json:"data"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, unreadable(models, data, err)
	}
	if len(list.Data) == 0 || list.Data[0].ID == "" {
		return nil, &answerError{What: fmt.Sprintf("%s names no model: %s", models, snippet(data))}
	}
	return list.Data, nil
}

// findModel chooses the model that is asked: name, which must be there, or without one that which is
// called as like, or the first. A server that has no list is asked for name, or like.
func (c *client) findModel(ctx context.Context, name, like string) error {
	list, err := c.list(ctx)
	if err != nil {
		return err
	}
	if list == nil {
		c.model = cmp.Or(name, like)
		c.note("%s lists no models: %s is asked", models, sanitize.Line(cmp.Or(c.model, "one without a name")))
		return nil
	}
	at := slices.IndexFunc(list, func(m served) bool {
		return m.ID == name || name == "" && like != "" && path.Base(m.ID) == path.Base(like)
	})
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	if at < 0 && name != "" {
		return &answerError{What: fmt.Sprintf("the server has no model %s, but %s", name, sanitize.Line(strings.Join(ids, ", ")))}
	}
	at = max(at, 0)
	if len(ids) > 1 && name == "" {
		c.note("the server has %d models, %s is asked: --model asks another", len(ids), sanitize.Line(ids[at]))
	}
	c.model, c.longest = ids[at], list[at].MaxModel
	return nil
}

// ask sends a request. Until a first answer has come, one that the server refuses (400, 422) is sent
// again in the other forms; a note says so.
func (c *client) ask(ctx context.Context, a Ask) (Answer, error) {
	c.mu.Lock()
	taken, known := c.forms[a.path()]
	c.mu.Unlock()
	if known {
		return c.post(ctx, a, taken)
	}
	var first error
	for _, f := range forms {
		answer, err := c.post(ctx, a, f)
		if refused(err) {
			first = cmp.Or(first, err)
			continue
		}
		if err == nil {
			if first != nil {
				c.note("%s refuses %s (%s): it is asked for %s", a.path(), forms[0], first, f)
			}
			c.mu.Lock()
			c.forms[a.path()] = f
			c.mu.Unlock()
		}
		return answer, err
	}
	return Answer{}, first
}

// askForOne has a server name the most probable token alone from now on: of several, it names others than it chose. It
// reports whether it was asked for several.
func (c *client) askForOne(path string) (several bool) {
	c.mu.Lock()
	f := maps.Clone(c.forms[path])
	for _, key := range []string{"logprobs", "top_logprobs"} {
		if n, is := f[key].(int); is {
			several, f[key] = n > 1, 1
		}
	}
	c.forms[path] = f
	c.mu.Unlock()
	if several {
		c.note("the log-probabilities of %s are of other tokens than its texts have: it is asked for one alternative", path)
	}
	return several
}

// refused reports whether the server took a request for wrong.
func refused(err error) bool {
	e, is := errors.AsType[*answerError](err)
	return is && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity)
}

func (c *client) post(ctx context.Context, a Ask, f form) (Answer, error) {
	data, err := c.send(ctx, a.path(), a.body(c.model, f), nil)
	if err != nil {
		return Answer{}, err
	}
	choices, err := ReadAnswer(data)
	if err != nil {
		return Answer{}, unreadable(a.path(), data, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drafted.proposed += float64(choices[0].Drafted)
	c.drafted.accepted += float64(choices[0].Accepted)
	return choices[0], nil
}

// send sends a request, without a body one of GET, and returns the body of its answer, which must be of status 200 and
// come whole before the deadline. watch is given its lines as they come.
func (c *client) send(ctx context.Context, path string, body map[string]any, watch func(line []byte)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	method, address, data := http.MethodGet, path, []byte(nil)
	if strings.HasPrefix(path, "/") {
		address = c.base + path
	}
	if body != nil {
		method = http.MethodPost
		var err error
		if data, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("serving: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	r.Header.Set("Accept", "application/json, text/plain")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key := os.Getenv(KeyVariable); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, c.failed(ctx, path, err)
	}
	defer response.Body.Close()
	data = nil
	for lines := bufio.NewReader(io.LimitReader(response.Body, maxAnswer+1)); err == nil; {
		var line []byte
		line, err = lines.ReadBytes('\n')
		if data = append(data, line...); watch != nil {
			watch(line)
		}
	}
	switch {
	case err != io.EOF:
		return nil, c.failed(ctx, path, fmt.Errorf("the answer ended after %d bytes: %w", len(data), err))
	case len(data) > maxAnswer:
		return nil, &answerError{What: fmt.Sprintf("%s: the answer has more than %d MiB", path, maxAnswer>>20)}
	case response.StatusCode != http.StatusOK:
		what := fmt.Sprintf("%s: %s: %s", path, response.Status, message(data))
		return nil, &answerError{Status: response.StatusCode, What: what}
	}
	return data, nil
}

// failed says why no answer came.
func (c *client) failed(ctx context.Context, path string, err error) error {
	if u, is := errors.AsType[*url.Error](err); is {
		err = u.Err
	}
	what := err.Error()
	if ctx.Err() != nil {
		err, what = context.Canceled, fmt.Sprint(context.Cause(ctx))
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err, what = ctx.Err(), fmt.Sprintf("no answer within %s: give it more time with --timeout, or look at its log", c.timeout)
	}
	return &answerError{What: path + ": " + sanitize.Line(what), Err: err, gone: true}
}

func unreadable(path string, data []byte, err error) error {
	return &answerError{What: fmt.Sprintf("%s: the answer cannot be judged: %s: %s", path, sanitize.Line(err.Error()), snippet(data))}
}

// message is what a server says in an error: all of it, where that is in no form that is known.
func message(data []byte) string {
	var said struct{ Error, Detail json.RawMessage }
	var inner struct{ Message string }
	json.Unmarshal(data, &said)
	json.Unmarshal(said.Error, &inner)
	return snippet([]byte(cmp.Or(inner.Message, string(said.Error), string(said.Detail), string(data))))
}

// snippet shows the beginning of what a server wrote.
func snippet(data []byte) string {
	text := strings.ToValidUTF8(string(data[:min(len(data), maxSnippet)]), "")
	if len(data) > maxSnippet {
		text += "…"
	}
	return cmp.Or(sanitize.Line(text), "(empty)")
}
