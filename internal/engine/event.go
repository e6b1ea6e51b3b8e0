package engine

import "github.com/goparity/goparity/internal/supervise"

// Event is one line of progress.
type Event struct {
	Phase   string      `json:"phase,omitempty"`   // import, load, compile, sanity, forward, write: it begins, or it ended if Seconds is there
	Seconds *float64    `json:"seconds,omitempty"` // how long the phase took, over all cases so far
	Model   *EventModel `json:"model,omitempty"`   // what was built; it comes once or more before the first forward pass
	Warning string      `json:"warning,omitempty"`
	Error   *EventError `json:"error,omitempty"`
}

// EventModel is the class that computes, and the source file that it is in.
type EventModel struct {
	Class string `json:"class"`
	File  string `json:"file"`
}

// EventError is how an engine says what went wrong before it exits.
type EventError struct {
	Class   string `json:"class"` // infra, model, usage or bug
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Where   string `json:"where,omitempty"`
}

// redact takes the secrets out of everything that an event says.
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
