package session

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/transformers"
)

// MayUpdate refuses updates in CI, which nobody would see.
func MayUpdate(getenv func(string) string) error {
	if ci := strings.ToLower(getenv("CI")); ci != "" && ci != "false" && ci != "0" && getenv("PARITY_UPDATE_IN_CI") != "1" {
		return fmt.Errorf("goldens are not updated in CI (CI=%s): set PARITY_UPDATE_IN_CI=1 if this job is meant to", getenv("CI"))
	}
	return nil
}

// unedited refuses an update that would run an edited copy of transformers: what that computes is
// no reference.
func unedited(dump string) error {
	if dump != "" {
		return nil // whoever ran it: its run.json says with what
	}
	overlay, err := transformers.Find(".")
	if err != nil || overlay == nil {
		return err
	}
	return fmt.Errorf("goldens are not updated while transformers is edited: %s", overlay)
}

// blessed is what reports say of goldens that do not come from the reference; "" for others.
func blessed(engine, date, reason string) string {
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("the golden is not the reference's: it is a run of %s of %s, blessed: %s", engine, date, reason)
}
