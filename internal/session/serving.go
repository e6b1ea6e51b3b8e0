package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Serving says which server is asked a fixture's cases, and how. The zero value is what the fixture
// says in serve, and the defaults.
type Serving struct {
	URL      string        // instead of the fixture's own server
	Model    string        // the name that is asked for, instead of the fixture's
	Timeout  time.Duration // of each answer
	Parallel int           // how many requests are on their way at once
	Draws    int           // how many tokens are drawn for each setting of sampling, instead of the fixture's
	Start    time.Duration // for how long a server that is started may not be ready
	Encoding string        // in which the server computes; "" for what the fixture's encodings say of device
	Device   string        // that of a live run, else cpu, if empty
	Live     bool          // start the fixture's own server even where no engine is to run
}

// ErrNotLive says that a server would have to be started in a test that runs no engine.
var ErrNotLive = errors.New("the server of this fixture is started in a live run only: go test -parity.run=cpu, or gpu; or name one that runs, URL(…)")

// Serve asks a server the fixture's cases and judges its answers; what came of it is in the reports,
// too. A server that the fixture tells to start is ended before Serve returns.
func (f *Fixture) Serve(s Serving) (*report.Serving, error) {
	f.used.Store(true)
	out, err := f.serve(s)
	f.mu.Lock()
	defer f.mu.Unlock()
	if errors.Is(err, ErrNotLive) {
		f.servedLater = true
		return nil, err
	}
	if err != nil {
		f.servedErr = errors.Join(f.servedErr, err)
		return nil, err
	}
	f.served = append(f.served, out)
	return out, nil
}

func (f *Fixture) serve(s Serving) (*report.Serving, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	y, own := f.yaml, fixture.Serve{}
	if y.Serve != nil {
		own = *y.Serve
	}
	start := s.URL == "" && own.Command != nil
	switch t := y.Model.Task; {
	case s.URL == "" && y.Serve == nil:
		return nil, &engine.Error{Class: engine.ClassUsage, Msg: "no server to ask", Hint: "name one, --url or URL(…), or write serve: {url: …} in " + y.File}
	case start && f.cfg.Run == setting.RunReplay && !s.Live:
		return nil, ErrNotLive
	case t != "" && t != fixture.TextGeneration:
		return nil, &engine.Error{Class: engine.ClassUsage, Msg: fmt.Sprintf("%s: a model of task %s has no text to ask for", y.File, t),
			Hint: "serving is judged for " + fixture.TextGeneration}
	}
	if stale := f.staleGoldens("case.", "model."); len(stale) > 0 {
		return nil, errors.New(strings.Join(stale, "\n"))
	}
	refs, notes, err := f.servedReferences(s)
	if err != nil {
		return nil, err
	}
	model, unread := f.servedModel(refs)
	like := y.Model.Path
	if y.Model.Local() {
		if like, err = filepath.Abs(f.modelFolder()); err != nil {
			return nil, err
		}
	}
	ctx, stop := f.supervised()
	defer stop()
	opt := serving.Options{URL: cmp.Or(s.URL, own.URL), Name: cmp.Or(s.Model, own.Model), Like: like, Model: model,
		Timeout: s.Timeout, Parallel: s.Parallel, Draws: cmp.Or(s.Draws, own.Draws)}
	died := func() error { return nil }
	if start {
		metrics, err := serving.FreePort() // MAX listens on a second one, and 8001 may be another's
		if err != nil {
			return nil, err
		}
		server, words, err := f.startServer(ctx, s.Start, metrics)
		if err != nil {
			return nil, err
		}
		defer server.Stop()
		died = server.Died
		opt.URL, opt.Command, opt.Metrics = server.URL, words, fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics)
	}
	out, err := serving.Run(ctx, refs, opt)
	if err != nil {
		return nil, err
	}
	if out.Verdict == report.Error {
		if err := died(); err != nil {
			out.Error += "; " + engine.Message(err)
		}
	}
	out.Notes = slices.Concat(unread, notes, out.Notes)
	return out, nil
}

// startServer starts the server that the fixture names; a port is for its metrics.
func (f *Fixture) startServer(ctx context.Context, limit time.Duration, metrics int) (*serving.Server, []string, error) {
	port, err := serving.FreePort()
	if err != nil {
		return nil, nil, err
	}
	dir, words, url, err := f.yaml.ServeProgram(port)
	if err != nil {
		return nil, nil, err
	}
	env, err := engine.Environ()
	if err != nil {
		return nil, nil, err
	}
	env = append([]string{fmt.Sprintf("MAX_SERVE_METRICS_ENDPOINT_PORT=%d", metrics)}, env...)
	opt, err := f.options("serve")
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(opt.LogFile), 0o755); err != nil {
		return nil, nil, fmt.Errorf("session: the log: %w", err)
	}
	f.say(fmt.Sprintf("starts %s (log: %s)", strings.Join(words, " "), opt.LogFile))
	s, err := serving.Start(ctx, serving.Program{Command: words, Dir: dir, Env: env, LogFile: opt.LogFile, URL: url, Ready: f.yaml.Serve.Ready,
		Timeout: limit})
	return s, words, err
}

// servedModel reads what the model's own files say: the tokens that end a text, and its vocabulary, unless
// that makes other texts of the references' tokens.
func (f *Fixture) servedModel(refs []*serving.Reference) (m serving.Model, notes []string) {
	dir := f.modelFolder()
	if dir != "" {
		m.EOS = checkpoint.EOS(dir)
	}
	if tokenizer := f.yaml.Model.Tokenizer; tokenizer != "" {
		dir = f.folder(tokenizer, "")
	}
	if dir == "" {
		return m, nil
	}
	v, err := serving.OpenVocab(dir)
	if err != nil {
		return m, []string{"texts are not made of token ids: " + err.Error()}
	}
	if m.EOS == nil {
		if id, ok := v.ID(checkpoint.EOSToken(dir)); ok {
			m.EOS = []int{id}
		}
	}
	for _, r := range refs {
		for _, known := range []struct {
			ids  []int
			text string
		}{{r.Prompt, r.Ask.Prompt}, {r.Tokens, r.Text}} {
			text, ok := v.Text(known.ids, true)
			text, want := strings.TrimSpace(text), strings.TrimSpace(known.text)
			if same := strings.HasPrefix(want, text) || strings.HasPrefix(text, want); known.ids == nil || want == "" || ok && same {
				continue
			}
			if !strings.Contains(text+want, "\uFFFD") {
				return m, []string{fmt.Sprintf("texts are not made of token ids: by the model's tokenizer.json, %q of case %s would be %q", want, r.Case, text)}
			}
		}
	}
	m.Vocab = v
	return m, nil
}

// servedReferences are what the goldens say of each sequence of each case.
func (f *Fixture) servedReferences(s Serving) (refs []*serving.Reference, notes []string, err error) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	device := cmp.Or(s.Device, engine.CPU)
	if s.Device == "" && f.cfg.Run == setting.RunGPU {
		device = engine.GPU
	}
	variant := f.yaml.Reference(device)
	judging, err := f.servedType(s, device, variant)
	if err != nil {
		return nil, nil, err
	}
	for _, y := range f.yaml.Cases {
		if len(y.Images) > 0 && y.Messages == nil {
			note("not judged: case %s has images and no messages, and the API takes images in a chat", y.Name)
			continue
		}
		run, err := f.goldens.Golden(variant, y.Name)
		if err != nil {
			return nil, nil, err
		}
		asks, err := f.asksOf(y)
		if err != nil {
			return nil, nil, err
		}
		for i, ask := range asks {
			ref, err := f.servedReference(run, variant, y, i, judging)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: case %s: %w", f.goldens.Dir(), y.Name, err)
			}
			if ref.Case = y.Name; len(asks) > 1 {
				ref.Case = fmt.Sprintf("%s[%d]", y.Name, i)
			}
			if len(ref.Tokens) == 0 {
				note("not judged: the best token after case %s is one that the tokenizer does not have", ref.Case)
				continue
			}
			if n, of := len(ref.Tokens), max(y.Steps, f.yaml.Generation); n < of {
				note("case %s is asked for %d of %d tokens: there the golden went on with a token that is not its best", ref.Case, n, of)
			}
			switch {
			case ask.As == serving.AsIDs:
				ref.Prompt = ask.IDs
			case ask.Images != nil:
				ref.Prompt = nil // servers count one token for an image, or as many as it has, or none
			}
			ref.Ask = ask
			ref.Ask.Tokens = len(ref.Tokens)
			for _, text := range run.Info.Text { // what the reference made of it with a mistake
				if ask.As == serving.AsChat && text.Messages != nil || ask.As == serving.AsText && text.Prompt == ask.Prompt {
					ref.Mistakes = append(ref.Mistakes, text.Mistakes...)
				}
			}
			refs = append(refs, ref)
		}
	}
	return refs, notes, nil
}

// servedReference is what the goldens of a case say of one of its sequences, by its text if they have one.
func (f *Fixture) servedReference(run *dump.Run, variant string, y fixture.Case, sequence int, judging tensor.DType) (*serving.Reference, error) {
	if f.yaml.Generation <= y.Steps {
		return referenceOf(run, sequence, judging)
	}
	spoken, err := f.goldens.Golden(variant, dump.PathCase(y.Name, dump.Generated))
	if err != nil {
		return nil, err
	}
	return spokenReference(spoken, judging)
}

// servedType is the type by whose noise answers are judged: the coarser of the golden's and that in
// which the server computes, as far as it is known.
func (f *Fixture) servedType(s Serving, device, variant string) (tensor.DType, error) {
	ref, _ := f.yaml.Variant(variant)
	judging, err := tensor.ParseDType(ref.DType)
	if err != nil {
		return judging, err
	}
	asked, known := f.yaml.Model.Encodings[device]
	for _, other := range f.yaml.Model.Encodings {
		if !known {
			asked = other // of the only device that the fixture knows
		}
	}
	d, err := tensor.ParseDType(cmp.Or(s.Encoding, asked.Candidate))
	switch {
	case err != nil && s.Encoding != "":
		return judging, &engine.Error{Class: engine.ClassUsage, Msg: fmt.Sprintf("the encoding %q of the server is not known", s.Encoding),
			Hint: "want float32, bfloat16, float16, …"}
	case err == nil && d.IsFloat() && d.Epsilon() > judging.Epsilon():
		return d, nil
	}
	return judging, nil
}

// asksOf are the requests of a case, one for each sequence.
func (f *Fixture) asksOf(y fixture.Case) (asks []serving.Ask, err error) {
	for _, p := range y.Prompts {
		asks = append(asks, serving.Ask{As: serving.AsText, Prompt: p})
	}
	for _, ids := range y.TokenIDs {
		asks = append(asks, serving.Ask{As: serving.AsIDs, IDs: ids})
	}
	if y.Messages != nil {
		a := serving.Ask{As: serving.AsChat, Tools: y.Tools}
		for _, m := range y.Messages {
			a.Messages = append(a.Messages, dump.Message(m))
		}
		for _, image := range slices.Concat(f.yaml.ImagesOf(y)...) {
			file, err := engine.ReadImage(image)
			if err != nil {
				return nil, fmt.Errorf("%s: case %s: %w", f.yaml.File, y.Name, err)
			}
			a.Images = append(a.Images, engine.ImageURI(file))
		}
		asks = append(asks, a)
	}
	return asks, nil
}

// ServeReport is the report of what servers answered, where no tensors were judged; nil if none was
// asked.
func (f *Fixture) ServeReport() *report.Report {
	if len(f.served) == 0 && f.servedErr == nil {
		return nil
	}
	r := &report.Report{Fixture: f.name}
	f.addServing(r)
	return r
}

// addServing adds what servers answered to a report: of several, the first whose answers do not hold.
func (f *Fixture) addServing(r *report.Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servedErr != nil {
		r.SetServing(&report.Serving{Verdict: report.Error, Error: engine.Message(f.servedErr), Causes: []report.Cause{},
			Requests: []report.ServedRequest{}})
		return
	}
	var first *report.Serving
	for _, s := range f.served {
		if first == nil || first.Verdict == report.Pass && s.Verdict != report.Pass {
			first = s
		}
	}
	for _, s := range f.served {
		if s != first {
			r.Notes = append(r.Notes, s.Title()+": "+s.Headline())
		}
	}
	r.SetServing(first)
}

// referenceOf is what a golden says of one of its sequences: its prompt, the tokens that it chose,
// and the logits of each choice. A token that the next step was fed and that is not the best of its
// row ends it, and so does one that the tokenizer does not have: a server chooses the best.
func referenceOf(run *dump.Run, sequence int, judging tensor.DType) (*serving.Reference, error) {
	ref := &serving.Reference{}
	if asked := run.Prompts(); sequence < len(asked) {
		ref.Prompt = asked[sequence]
	}
	if sequence == 0 {
		ref.Text = run.Info.ReferenceText
	}
	var decoded []int
	if all := run.Decoded(); sequence < len(all) {
		decoded = all[sequence]
	}
	sheet, err := path.New(run, nil)
	if err != nil {
		return nil, err
	}
	layer, port := logitsOf(run.Entries)
	return ref, choose(ref, judging, decoded, len(run.Steps()), func(k int) (generation.Row, error) {
		at := len(run.Info.Unpadded()[sequence]) - 1 + k
		rows, err := sheet.Rows(layer, port, sequence, at, at+1)
		if err != nil || len(rows) != 1 || rows[0].Len() < 2 {
			return generation.Row{}, fmt.Errorf("step %d has no logits: let capture keep lm_head, or the model's output, and renew the goldens", k)
		}
		return generation.NewRow(vec.ReadAll(rows[0])), nil
	})
}

// spokenReference is what a golden says that keeps logits along a text.
func spokenReference(run *dump.Run, judging tensor.DType) (*serving.Reference, error) {
	side, err := paths.OpenSide(run, nil)
	if err != nil {
		return nil, err
	}
	of := run.Info.Generation
	ref := &serving.Reference{Prompt: side.Text[:of.From], Text: run.Info.ReferenceText}
	return ref, choose(ref, judging, of.Tokens, len(of.Tokens), func(k int) (generation.Row, error) {
		row, _ := side.Row(k)
		return row, nil
	})
}

// choose reads n rows. fed are the tokens that followed them, as far as they are known.
func choose(ref *serving.Reference, judging tensor.DType, fed []int, n int, read func(k int) (generation.Row, error)) error {
	err := mapfile.Guard(func() error {
		for k := range n {
			of, err := read(k)
			if err != nil {
				return err
			}
			if of.Beyond { // a server may choose that token
				return nil
			}
			row := serving.NewRow(of, judging)
			best := row.Best()
			ref.Rows, ref.Tokens = append(ref.Rows, row), append(ref.Tokens, best)
			if k < len(fed) && fed[k] != best {
				if x, _ := row.Logit(fed[k]); len(row.Top) == 0 || x != row.Top[0].Value {
					return nil
				}
				ref.Tokens[k] = fed[k]
			}
		}
		return nil
	})
	if words := strings.Trim(fmt.Sprint(ref.Tokens), "[]"); strings.HasPrefix(ref.Text, words) || strings.HasPrefix(words, ref.Text) {
		ref.Text = "" // a reference without a tokenizer wrote its ids
	}
	return err
}

// logitsOf is the output that is most surely called logits, the last of several.
func logitsOf(entries []dump.Entry) (layer, port string) {
	least := 1
	for _, e := range entries {
		rank := label.LogitsRank(e.Layer, e.Port)
		if rank >= least && label.RoleOf(e.Port) == label.RoleOutput && e.Tensor.DType().IsFloat() {
			layer, port, least = e.Layer, e.Port, rank
		}
	}
	return layer, port
}
