package secret

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Writer returns a writer that passes on to w what is written to it, with each byte of a secret
// overwritten by an asterisk. It keeps a line until it is complete, and a private key, but of an
// endless line not much more than 64 KiB. Close passes on the rest; it does not close w.
func (v *Values) Writer(w io.Writer) io.WriteCloser { return &writer{v: v, w: w} }

type writer struct {
	v      *Values
	w      io.Writer
	kept   []byte
	passed int // how many bytes of kept are passed on: they stay to tell what the next ones are
}

// most is how many bytes of an endless line a writer passes on at once.
const most = 64 << 10

func (w *writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), most)
		w.kept = append(w.kept, p[:k]...)
		p = p[k:]
		if err := w.pass(); err != nil {
			return n - len(p), err
		}
	}
	return n, nil
}

// pass passes on the complete lines, or the beginning of a line that is too long.
func (w *writer) pass() error {
	end := bytes.LastIndexAny(w.kept, "\r\n") + 1
	begin := bytes.LastIndex(w.kept[:end], []byte("-----BEGIN "))
	if begin >= 0 && end-begin < reach && !bytes.Contains(w.kept[begin:], []byte("-----END ")) {
		end = begin
	}
	if end > w.passed {
		_, err := w.w.Write(w.v.masked(w.kept[:end], w.passed, end))
		w.forget(end, end)
		return err
	}
	margin := w.v.margin()
	if len(w.kept)-w.passed < most+margin {
		return nil
	}
	end = len(w.kept) - margin
	_, err := w.w.Write(w.v.masked(w.kept, w.passed, end))
	w.forget(end-min(end, margin), end)
	return err
}

// forget drops the first bytes of what is kept, of which those before end are passed on.
func (w *writer) forget(drop, end int) {
	w.kept = append(w.kept[:0], w.kept[drop:]...)
	w.passed = end - drop
}

func (w *writer) Close() error {
	_, err := w.w.Write(w.v.masked(w.kept, w.passed, len(w.kept)))
	w.kept, w.passed = nil, 0
	return err
}

// margin is how many bytes on both sides of a byte tell whether it is part of a secret.
func (v *Values) margin() int {
	n := reach
	if v != nil {
		for _, list := range [][][]byte{v.substrings, v.wholeWords} {
			if len(list) > 0 {
				n = max(n, len(list[0]))
			}
		}
	}
	return n + context // also beside a value that must stand alone
}

// MaskFile overwrites each byte of a secret in a file with an asterisk, so that nothing in it
// moves.
func (v *Values) MaskFile(path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		if masked := v.masked(text, 0, len(text)); !bytes.Equal(masked, text) {
			err = os.WriteFile(path, masked, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("secrets could not be removed: %w", err)
	}
	return nil
}
