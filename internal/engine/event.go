package engine

import "github.com/goparity/goparity/internal/supervise"

// Event is one line of progress.
type Event struct {
	// Phase is import, load, compile, sanity, forward or write. It begins, or has ended if Seconds
	// is set.
	Phase   string      `json:"phase,omitempty"`
	Seconds *float64    `json:"seconds,omitempty"` // how long the phase took, over all cases so far
	Model   *EventModel `json:"model,omitempty"`   // sent at least once before the first forward pass
	Warning string      `json:"warning,omitempty"`
	Error   *EventError `json:"error,omitempty"`
}

// EventModel is the class of the model, and its source file.
type EventModel struct {
	Class string `json:"class"`
	File  string `json:"file"`
}

// EventError says what went wrong. An engine sends it before it exits.
type EventError struct {
	Class   string `json:"class"` // infra, model, usage or bug
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Where   string `json:"where,omitempty"`
}

// redact removes the secrets from all texts of an event.
func (e *Event) redact(secrets []string) {
	texts := []*string{&e.Phase, &e.Warning}
	if e.Model != nil {
		texts = append(texts, &e.Model.Class, &e.Model.File)
	}
	if e.Error != nil {
		texts = append(texts, &e.Error.Class, &e.Error.Message, &e.Error.Hint, &e.Error.Where)
	}
	for _, t := range texts {
		*t = supervise.Redact(*t, secrets)
	}
}
