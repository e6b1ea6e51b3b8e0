// Package junit puts links to the files of a report into the JUnit file of the tests that wrote it.
package junit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/report"
)

// Path writes file as JUnit readers want it: relative to root (the project's folder) with forward
// slashes for GitLab, or absolute for Jenkins.
func Path(file, root string, absolute bool) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	if !absolute {
		if root, err = filepath.Abs(root); err != nil {
			return "", fmt.Errorf("report: %w", err)
		}
		if path, err = filepath.Rel(root, path); err != nil {
			return "", fmt.Errorf("report: attachment %q has no path from %q: %w", file, root, err)
		}
	}
	return filepath.ToSlash(path), nil
}

// Attach puts the lines [[ATTACHMENT|path]] into the <system-out> of the failed test cases that
// belong to r: the tests that judged it, what is below them, and the tests that hold them. GitLab,
// Jenkins and Azure DevOps show them as links. All other bytes stay as they are, and lines that are
// there already are not added again. paths are written as they are, see [Path].
//
// A file that is not well-formed XML is an error that names the line.
func Attach(junit []byte, r *report.Report, paths ...string) ([]byte, error) {
	for _, path := range paths {
		if path == "" || strings.Contains(path, "]]") || strings.ContainsFunc(path, unicode.IsControl) {
			return nil, fmt.Errorf("report: %q cannot be attached: a path must be one line without \"]]\"", path)
		}
	}
	cases, err := testcases(junit)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	at := 0
	for _, c := range belonging(cases, r) {
		at = c.attach(&out, junit, at, paths)
	}
	out.Write(junit[at:])
	return out.Bytes(), nil
}

// testcase is one test case of a JUnit file. Offsets are bytes of the file.
type testcase struct {
	class, name    string
	failed         bool
	end            int // of its content: where </testcase> begins
	out            string
	outStart       int // of its <system-out> tag
	outEnd         int // where </system-out> begins, or the end of <system-out/>
	hasOut, single bool
}

// testcases finds the test cases of a JUnit file.
func testcases(junit []byte) ([]testcase, error) {
	d := xml.NewDecoder(bytes.NewReader(junit))
	var cases []testcase
	var c *testcase
	depth, elements := 0, 0 // depth below the test case
	inOut := false
	for {
		start := int(d.InputOffset())
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, _ := d.InputPos()
			return nil, fmt.Errorf("report: the JUnit file is damaged at line %d: %w", line, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			elements++
			switch {
			case c != nil:
				depth++
				if depth == 1 {
					c.failed = c.failed || t.Name.Local == "failure" || t.Name.Local == "error"
					if t.Name.Local == "system-out" && !c.hasOut {
						inOut = true
						c.hasOut, c.outStart, c.outEnd = true, start, int(d.InputOffset())
					}
				}
			case t.Name.Local == "testcase":
				c = &testcase{class: attr(t, "classname"), name: attr(t, "name")}
				depth = 0
			}
		case xml.CharData:
			if inOut {
				c.out += string(t)
			}
		case xml.EndElement:
			switch {
			case c == nil:
			case depth == 0:
				c.end = start
				cases = append(cases, *c)
				c = nil
			default:
				if depth == 1 && inOut {
					inOut = false
					c.single = start == int(d.InputOffset())
					c.outEnd = start
				}
				depth--
			}
		}
	}
	if elements == 0 {
		return nil, errors.New("report: the JUnit file is empty: the tests did not run to their end")
	}
	return cases, nil
}

func attr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// belonging picks the failed test cases of the tests that judged r, in the order of the file: of r's
// own package, if both the report and the file say which that is.
func belonging(cases []testcase, r *report.Report) (picked []testcase) {
	if own := ofPackage(cases, r.Package); len(own) > 0 {
		cases = own
	}
	for _, c := range cases {
		if c.failed && slices.ContainsFunc(r.Tests, func(test string) bool { return holds(test, c.name) || holds(c.name, test) }) {
			picked = append(picked, c)
		}
	}
	return picked
}

// holds reports whether a test is the other one, or is inside of it.
func holds(outer, inner string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || rest[0] == '/')
}

// ofPackage picks the test cases of a package: their class is its import path, or the end of it.
func ofPackage(cases []testcase, path string) (own []testcase) {
	for _, c := range cases {
		if c.class != "" && strings.HasSuffix("/"+path, "/"+c.class) {
			own = append(own, c)
		}
	}
	return own
}

// attach copies junit from at on, with the lines that c lacks, and returns up to where it has
// copied.
func (c *testcase) attach(out *bytes.Buffer, junit []byte, at int, paths []string) int {
	var lines bytes.Buffer
	for _, path := range paths {
		line := "[[ATTACHMENT|" + path + "]]"
		if !strings.Contains(c.out, line) {
			_ = xml.EscapeText(&lines, []byte(line)) // a bytes.Buffer takes all
			lines.WriteByte('\n')
		}
	}
	if lines.Len() == 0 {
		return at
	}
	open, closing := "<system-out>\n", "</system-out>"
	switch {
	case !c.hasOut:
		out.Write(junit[at:c.end])
		fmt.Fprintf(out, "\t%s%s%s\n\t\t", open, lines.Bytes(), closing)
		return c.end
	case c.single:
		out.Write(junit[at:c.outStart])
		fmt.Fprintf(out, "%s%s%s", open, lines.Bytes(), closing)
		return c.outEnd
	default:
		out.Write(junit[at:c.outEnd])
		fmt.Fprintf(out, "\n%s", lines.Bytes())
		return c.outEnd
	}
}
