package golden

import (
	"errors"
	"slices"

	"github.com/goparity/goparity/internal/dump"
)

// Path says how the reference itself does along an execution path: run along it, it has in each row
// what it has in one pass, or it has not, and then the path keeps goldens of its own.
type Path struct {
	Variant string `json:"variant"`
	Case    string `json:"case,omitempty"` // "" for a path that runs all cases together
	Path    string `json:"path"`           // "decode:8"
	// Own says that the path has goldens of its own, of the case [Path.Golden].
	Own bool `json:"own,omitempty"`
	// Left says that the case is not run along the path: with its images the reference itself is not
	// what it is in one pass.
	Left bool `json:"left,omitempty"`
	// RowRelL2 is how far the worst row is from that of one pass, ‖a − g‖ / ‖g‖, and Limit what it
	// may be; both are 0 where one pass has no such rows.
	RowRelL2 float64 `json:"row_rel_l2"`
	Limit    float64 `json:"limit"`
	Label    string  `json:"label,omitempty"` // of the tensor with the worst row
}

// Golden is the case under which goldens of the path's own are kept: "short@decode-8".
func (p Path) Golden() string { return dump.PathCase(p.Case, p.Path) }

func (p *Path) check() error {
	if !partPattern.MatchString(p.Variant) || p.Case != "" && !partPattern.MatchString(p.Case) || p.Path == "" {
		return errors.New("want a variant, a case and a path")
	}
	if !(p.RowRelL2 >= 0) || !(p.Limit >= 0) {
		return errors.New("row_rel_l2 and limit are figures from 0")
	}
	return nil
}

// Paths returns what is known of the reference along execution paths. The caller must not change it.
func (s *Store) Paths() []Path { return s.manifest.Paths }

// pathsAfter are the entries of old that opts do not replace, and theirs.
func pathsAfter(old []Path, opts []ImportOptions) []Path {
	kept := slices.DeleteFunc(slices.Clone(old), func(p Path) bool {
		return slices.ContainsFunc(opts, func(opt ImportOptions) bool {
			return p.Variant == opt.Variant && (p.Case == "" || opt.Runs[p.Case] != nil)
		})
	})
	for _, opt := range opts {
		kept = append(kept, opt.Paths...)
	}
	return kept
}
