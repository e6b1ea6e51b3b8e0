package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Writer returns a writer that passes on to w what is written to it, with each byte of a secret
// overwritten by an asterisk. It keeps a line until it is complete, and a private key, but never
// much more than 64 KiB. Close passes on the rest; it does not close w.
func (v *Values) Writer(w io.Writer) io.WriteCloser { return &writer{v: v, w: w} }

type writer struct {
	v    *Values
	w    io.Writer
	kept []byte
}

// most is how many bytes a writer keeps before it passes on some of an endless line.
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
	end, whole := bytes.LastIndexAny(w.kept, "\r\n")+1, true
	begin := bytes.LastIndex(w.kept[:end], []byte("-----BEGIN "))
	if begin >= 0 && end-begin < reach && !bytes.Contains(w.kept[begin:], []byte("-----END ")) {
		end = begin
	}
	if end == 0 && len(w.kept) >= most {
		end, whole = len(w.kept)-w.v.overlap(), false
	}
	if end == 0 {
		return nil
	}
	spans := w.v.spans(w.kept[:end])
	if !whole { // a secret that goes on after end waits until all of it is here
		spans = w.v.spans(w.kept)
		for _, s := range spans {
			if 0 < s[0] && s[0] < end && end <= s[1] {
				end = s[0]
			}
		}
	}
	mask(w.kept, spans, end)
	_, err := w.w.Write(w.kept[:end])
	w.kept = append(w.kept[:0], w.kept[end:]...)
	return err
}

func (w *writer) Close() error {
	w.v.Mask(w.kept)
	_, err := w.w.Write(w.kept)
	w.kept = nil
	return err
}

// overlap is how many bytes must be looked at together to find each secret.
func (v *Values) overlap() int {
	n := reach
	if v != nil {
		for _, list := range [][][]byte{v.anywhere, v.alone} {
			if len(list) > 0 {
				n = max(n, len(list[0]))
			}
		}
	}
	return min(n, most/2)
}

// MaskFile overwrites each byte of a secret in a file with an asterisk, so that nothing in it
// moves.
func (v *Values) MaskFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("secrets could not be removed: %w", err)
	}
	if err := errors.Join(v.maskFile(f), f.Close()); err != nil {
		return fmt.Errorf("secrets could not be removed from %s: %w", path, err)
	}
	return nil
}

func (v *Values) maskFile(f *os.File) error {
	const step = 1 << 20
	window := make([]byte, step+v.overlap()) // a secret that begins in a step ends in its window
	for from := int64(0); ; from += step {
		n, err := f.ReadAt(window, from)
		if err != nil && err != io.EOF {
			return err
		}
		last := step // those that begin later are found in the next window, as a whole
		if err == io.EOF {
			last = n
		}
		if mask(window[:n], v.spans(window[:n]), last) {
			if _, err := f.WriteAt(window[:n], from); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}
