package export

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

// Path writes file as JUnit readers want it: relative to root (the absolute path of the project's folder) with forward
// slashes for GitLab, or absolute for Jenkins.
func Path(file, root string, absolute bool) (string, error) {
	path, err := filepath.Abs(file)
	if err == nil && !absolute {
		path, err = filepath.Rel(root, path)
	}
	if err != nil {
		return "", fmt.Errorf("report: attachment %q: %w", file, err)
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
		var lines bytes.Buffer
		for _, path := range paths {
			if line := "[[ATTACHMENT|" + path + "]]"; !strings.Contains(c.output, line) {
				_ = xml.EscapeText(&lines, []byte(line)) // a bytes.Buffer takes all
				lines.WriteByte('\n')
			}
		}
		if lines.Len() == 0 {
			continue
		}
		out.Write(junit[at:c.from])
		out.WriteString(c.before + lines.String() + c.after)
		at = c.to
	}
	out.Write(junit[at:])
	return out.Bytes(), nil
}

type testcase struct {
	class, name   string
	failed        bool
	output        string // of its <system-out>
	from, to      int    // bytes of the file that lines to add take the place of
	before, after string // what stands around them there
}

func testcases(junit []byte) (cases []testcase, err error) {
	d := xml.NewDecoder(bytes.NewReader(junit))
	var c *testcase       // the one that is read
	depth, output := 0, 0 // of the elements in it, and where the tag of its <system-out> begins
	elements := 0
	for {
		from := int(d.InputOffset())
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
			switch depth++; {
			case t.Name.Local == "testcase":
				c, depth = &testcase{}, 0
				for _, a := range t.Attr {
					switch a.Name.Local {
					case "classname":
						c.class = a.Value
					case "name":
						c.name = a.Value
					}
				}
			case c == nil || depth > 1:
			case t.Name.Local == "failure" || t.Name.Local == "error":
				c.failed = true
			case t.Name.Local == "system-out":
				output = from
			}
		case xml.CharData:
			if output > 0 {
				c.output += string(t)
			}
		case xml.EndElement:
			switch {
			case c == nil:
			case depth == 0:
				if c.to == 0 {
					c.from, c.to, c.before, c.after = from, from, "\t<system-out>\n", "</system-out>\n\t\t"
				}
				cases, c = append(cases, *c), nil
			case depth == 1 && output > 0:
				c.from, c.to, c.before = from, from, "\n"
				if from == int(d.InputOffset()) { // <system-out/>
					c.from, c.before, c.after = output, "<system-out>\n", "</system-out>"
				}
				output = 0
			}
			depth--
		}
	}
	if elements == 0 {
		return nil, errors.New("report: the JUnit file is empty: the tests did not run to their end")
	}
	return cases, nil
}

// belonging picks the failed test cases of the tests that judged r, in the order of the file: of r's
// own package, if both the report and the file say which that is.
func belonging(cases []testcase, r *report.Report) []testcase {
	elsewhere := func(c testcase) bool { // a class is the import path of a package, or the end of it
		return c.class == "" || !strings.HasSuffix("/"+r.Package, "/"+c.class)
	}
	if own := slices.DeleteFunc(slices.Clone(cases), elsewhere); len(own) > 0 {
		cases = own
	}
	return slices.DeleteFunc(cases, func(c testcase) bool {
		return !c.failed || !slices.ContainsFunc(r.Tests, func(test string) bool { return holds(test, c.name) || holds(c.name, test) })
	})
}

// holds reports whether a test is the other one, or is inside of it.
func holds(outer, inner string) bool { return inner == outer || strings.HasPrefix(inner, outer+"/") }
