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

// testcase is one test case of a JUnit file.
type testcase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Failure *struct{} `xml:"failure"`
	Error   *struct{} `xml:"error"`
	Out     *output   `xml:"system-out"`

	end int // byte of the file at which </testcase> begins
}

// output is a <system-out>. Offsets are bytes of the file.
type output struct {
	text       string
	open, end  int // after its tag, and where </system-out> begins
	start      int // of its tag
	selfClosed bool
}

func (o *output) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	o.open = int(d.InputOffset())
	err := d.DecodeElement(&o.text, &start)
	o.end = int(d.InputOffset())
	return err
}

// testcases finds the test cases of a JUnit file.
func testcases(junit []byte) (cases []testcase, err error) {
	d := xml.NewDecoder(bytes.NewReader(junit))
	elements := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if start, ok := token.(xml.StartElement); ok {
			elements++
			if start.Name.Local == "testcase" {
				var c testcase
				if err = d.DecodeElement(&c, &start); err == nil {
					cases = append(cases, c.located(junit[:d.InputOffset()]))
				}
			}
		}
		if err != nil {
			line, _ := d.InputPos()
			return nil, fmt.Errorf("report: the JUnit file is damaged at line %d: %w", line, err)
		}
	}
	if elements == 0 {
		return nil, errors.New("report: the JUnit file is empty: the tests did not run to their end")
	}
	return cases, nil
}

// located finds the tags of a test case with which a file ends.
func (c testcase) located(file []byte) testcase {
	c.end = bytes.LastIndexByte(file, '<')
	if o := c.Out; o != nil {
		o.start = bytes.LastIndexByte(file[:o.open], '<')
		if o.selfClosed = o.open == o.end; !o.selfClosed {
			o.end = bytes.LastIndexByte(file[:o.end], '<')
		}
	}
	return c
}

// belonging picks the failed test cases of the tests that judged r, in the order of the file: of r's
// own package, if both the report and the file say which that is.
func belonging(cases []testcase, r *report.Report) (picked []testcase) {
	if own := ofPackage(cases, r.Package); len(own) > 0 {
		cases = own
	}
	for _, c := range cases {
		if (c.Failure != nil || c.Error != nil) && slices.ContainsFunc(r.Tests, func(test string) bool { return holds(test, c.Name) || holds(c.Name, test) }) {
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
		if c.Class != "" && strings.HasSuffix("/"+path, "/"+c.Class) {
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
		if c.Out == nil || !strings.Contains(c.Out.text, line) {
			_ = xml.EscapeText(&lines, []byte(line)) // a bytes.Buffer takes all
			lines.WriteByte('\n')
		}
	}
	from, to, form := c.end, c.end, "\t<system-out>\n%s</system-out>\n\t\t"
	switch {
	case lines.Len() == 0:
		return at
	case c.Out == nil:
	case c.Out.selfClosed:
		from, to, form = c.Out.start, c.Out.end, "<system-out>\n%s</system-out>"
	default:
		from, to, form = c.Out.end, c.Out.end, "\n%s"
	}
	out.Write(junit[at:from])
	fmt.Fprintf(out, form, lines.Bytes())
	return to
}
