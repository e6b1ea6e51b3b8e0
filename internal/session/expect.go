package session

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
)

// unexpected says what the model answers other than the fixture expects. A function without logits
// answers nothing.
func (f *Fixture) unexpected(c *judge.Comparison, isFunc bool) (out []string) {
	answered := true
	for _, y := range f.yaml.Cases {
		if y.Expect == nil {
			continue
		}
		if _, err := c.Answer(y.Name); err != nil && isFunc && y.Expect.OfLogits() {
			answered = false
			continue
		}
		for _, text := range f.unexpectedAnswers(c, y) {
			out = append(out, fmt.Sprintf("%s:%d: case %s: %s", f.yaml.File, y.Expect.Pos.Line, y.Name, text))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered = f.answered || answered
	return out
}

// unexpectedAnswers compares the answer to a case: the largest logit of the last row of the first forward pass,
// and the text of the reference, which the candidate's generation has to follow.
func (f *Fixture) unexpectedAnswers(c *judge.Comparison, y fixture.Case) (out []string) {
	e := y.Expect
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if e.Text != "" {
		switch said, err := f.referenceText(y.Name); {
		case err != nil:
			say("expect: text: %v", err)
		case said == "":
			say("expect: text: the golden does not say how the reference goes on: make it again, parity golden update %s", f.dir)
		case !strings.Contains(said, e.Text):
			say("expect: text %q is not in what the reference says, %q", e.Text, said)
		}
	}
	if !e.OfLogits() {
		return out
	}
	answer, err := c.Answer(y.Name)
	if err != nil {
		say("expect: %v", err)
		return out
	}
	if e.Argmax != nil && answer.Argmax != *e.Argmax {
		say("expect: argmax is %d in the candidate (%s), not %d", answer.Argmax, answer.Where, *e.Argmax)
	}
	if e.Label != "" {
		if is, err := f.label(answer.Argmax); err != nil {
			say("expect: label: %v", err)
		} else if is != e.Label {
			say("expect: label is %q in the candidate (%s, %d), not %q", is, answer.Where, answer.Argmax, e.Label)
		}
	}
	if answer.Confidence < e.MinConfidence {
		say("expect: the candidate's probability of %d is %.3g (%s), at least %g is asked", answer.Argmax, answer.Confidence, answer.Where, e.MinConfidence)
	}
	return out
}

// referenceText is how the reference goes on from a case.
func (f *Fixture) referenceText(caseName string) (string, error) {
	variant := f.yaml.Reference(string(f.cfg.Run))
	for _, name := range []string{caseName, dump.PathCase(caseName, dump.Generated)} {
		if g, err := f.goldens.Golden(variant, name); err == nil && g.Info.ReferenceText != "" {
			return g.Info.ReferenceText, nil
		} else if name == caseName && err != nil {
			return "", err
		}
	}
	return "", nil
}

// label is the name of a label by the model's config.json.
func (f *Fixture) label(at int) (string, error) {
	config, err := f.config()
	if err != nil {
		return "", err
	}
	names, _ := config["id2label"].(map[string]any)
	if name, ok := names[strconv.Itoa(at)].(string); ok {
		return name, nil
	}
	return "", fmt.Errorf("config.json of the model has no id2label for %d: give argmax in place of label", at)
}
