package engine

import (
	"encoding/json"
	"strings"

	"github.com/goparity/goparity/internal/sanitize"
)

// Event is one line of progress.
type Event struct {
	// Phase is import, load, compile, sanity, forward or write. It begins, or has ended if Seconds
	// is set.
	Phase   string      `json:"phase,omitempty"`
	Seconds *float64    `json:"seconds,omitempty"` // how long the phase took, over all cases so far
	Model   *eventModel `json:"model,omitempty"`   // sent at least once before the first forward pass
	Warning string      `json:"warning,omitempty"`
	Error   *eventError `json:"error,omitempty"`
}

// eventModel is the class of the model, and its source file.
type eventModel struct {
	Class string `json:"class"`
	File  string `json:"file"`
}

// eventError says what went wrong. An engine sends it before it exits.
type eventError struct {
	Class   string `json:"class"` // infra, model, usage or bug
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Where   string `json:"where,omitempty"`
	Case    string `json:"case,omitempty"` // that was being run
}

// eventReader takes the lines of a progress pipe. An engine may write any number of them.
type eventReader struct {
	secrets  *sanitize.Secrets
	to       func(Event) // may be nil
	events   int
	warnings []string
	said     *eventError // the last one
}

// line takes a line. A program may print other things than events.
func (h *eventReader) line(line []byte) {
	var e Event
	if json.Unmarshal(line, &e) != nil {
		return
	}
	e.clean(h.secrets)
	if e.Error != nil {
		h.said = e.Error
	}
	switch {
	case e.Warning == "":
	case len(h.warnings) < maxWarnings:
		h.warnings = append(h.warnings, e.Warning)
	case len(h.warnings) == maxWarnings:
		h.warnings = append(h.warnings, "there are more warnings, see the log")
	}
	if h.events++; h.to != nil && h.events <= maxEvents {
		h.to(e)
	}
}

// clean removes the secrets from all texts of an event, and shortens them.
func (e *Event) clean(secrets *sanitize.Secrets) {
	texts := []*string{&e.Phase, &e.Warning}
	if e.Model != nil {
		texts = append(texts, &e.Model.Class, &e.Model.File)
	}
	if e.Error != nil {
		texts = append(texts, &e.Error.Class, &e.Error.Message, &e.Error.Hint, &e.Error.Where, &e.Error.Case)
	}
	for _, t := range texts {
		if *t = secrets.Redact(*t); len(*t) > maxText {
			*t = strings.ToValidUTF8((*t)[:maxText], "") + "…"
		}
	}
}
