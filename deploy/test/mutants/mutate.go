package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutant is one change of the code. Mutants are numbered from 1, in the order of the package's list.
type mutant struct {
	file, function string
	line           int
	text           string // for example "never: if err != nil"
	// The field `text`. If the function has several mutants with the same text, the second and later ones also have a
	// number.
	change string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.file, m.line, m.function, m.change)
}

// maker inserts the mutants of one package into the source of its files. A mutant has no effect unless the
// environment variable MUTANT has its number. So one compiled program contains all mutants.
type maker struct {
	mutants []mutant
	name    string // name of the package

	file     string
	function string
	source   []byte
	set      *token.FileSet
	inserts  []insert
}

// insert is a text to insert at a place in a file. Several texts at the same place are sorted by their fields:
// first the texts that end something, from the inner to the outer, then the texts that begin something.
type insert struct {
	at     int
	begins bool
	order  int
	text   string
}

// helper is the source of a file that is added to each package with mutants. A mutant counts as reached only when it
// would make a difference. For example, the mutant "never" of a condition is reached only when the condition is true,
// and the mutant "always" only when the condition is false.
const helper = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantActive, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantReached   = os.Getenv("MUTANTS_REACHED")
	mutantSeen      [%d]atomic.Bool
)

func mutantOn(n int) bool {
	if mutantReached != "" && !mutantSeen[n].Swap(true) {
		file, err := os.OpenFile(mutantReached, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		file.WriteString(strconv.Itoa(n) + "\n")
		file.Close()
	}
	return n == mutantActive
}

func mutantError(n int, err error) error {
	if mutantOn(n) {
		return nil
	}
	return err
}

func mutantText(n int, changed, text string) string {
	if mutantOn(n) {
		return changed
	}
	return text
}
`

// mutate returns the source of a file with all its mutants inserted.
func (m *maker) mutate(file string, source []byte) ([]byte, error) {
	m.file, m.source, m.set, m.inserts = file, source, token.NewFileSet(), nil
	parsed, err := parser.ParseFile(m.set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	m.name = parsed.Name.Name
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			m.function = f.Name.Name
			m.body(f.Type, f.Body)
		}
	}
	return m.apply(), nil
}

func (m *maker) apply() []byte {
	slices.SortStableFunc(m.inserts, func(a, b insert) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.begins != b.begins && a.begins:
			return 1
		case a.begins != b.begins:
			return -1
		case a.begins:
			return a.order - b.order
		}
		return b.order - a.order
	})
	var out []byte
	done := 0
	for _, i := range m.inserts {
		out = append(append(out, m.source[done:i.at]...), i.text...)
		done = i.at
	}
	return append(out, m.source[done:]...)
}

// body adds the mutants in the body of a function, and in the functions inside it.
func (m *maker) body(of *ast.FuncType, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			m.body(n.Type, n.Body)
			return false
		case *ast.BlockStmt:
			m.statements(n.List)
		case *ast.CaseClause:
			m.statements(n.Body)
		case *ast.CommClause:
			m.statements(n.Body)
		case *ast.IfStmt:
			m.condition("if", n.Cond)
		case *ast.SwitchStmt:
			m.cases(n)
		case *ast.ForStmt:
			if n.Cond != nil {
				m.wrap(n.Cond, "((", fmt.Sprintf(") && !mutantOn(%d))", m.add("never", "for ", n.Cond)))
			}
		case *ast.BinaryExpr:
			m.operator(n)
		case *ast.ReturnStmt:
			m.result(of, n)
		}
		return true
	})
}

func (m *maker) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, c := range n.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			m.condition("case", e)
		}
	}
}

// condition adds the mutants "never" and "always" of a condition. For ||, it leaves out "never", and for &&,
// "always": the mutants that the method `operator` adds have the same effect.
func (m *maker) condition(of string, e ast.Expr) {
	inner, _ := ast.Unparen(e).(*ast.BinaryExpr)
	before, after := "((", ")"
	if inner == nil || inner.Op != token.LOR {
		after += fmt.Sprintf(" && !mutantOn(%d)", m.add("never", of+" ", e))
	}
	if inner == nil || inner.Op != token.LAND {
		after += fmt.Sprintf(" || mutantOn(%d)", m.add("always", of+" ", e))
	}
	m.wrap(e, before, after+")")
}

// operator adds mutants that leave out one operand of && or ||, and mutants that move the bound of a comparison.
func (m *maker) operator(e *ast.BinaryExpr) {
	bounds := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
	switch {
	case e.Op == token.LAND:
		for _, operand := range []ast.Expr{e.X, e.Y} {
			m.wrap(operand, "((", fmt.Sprintf(") || mutantOn(%d))", m.add("without", "&& ", operand)))
		}
	case e.Op == token.LOR:
		for _, operand := range []ast.Expr{e.X, e.Y} {
			m.wrap(operand, "((", fmt.Sprintf(") && !mutantOn(%d))", m.add("without", "|| ", operand)))
		}
	case bounds[e.Op] != "" && !holdsFunction(e):
		n := m.add(bounds[e.Op], "", e)
		m.wrap(e, fmt.Sprintf("(mutantOn(%d) && %s %s %s || !mutantOn(%d) && (", n, m.text(e.X), bounds[e.Op],
			m.text(e.Y), n), "))")
	}
}

func holdsFunction(e ast.Expr) bool {
	holds := false
	ast.Inspect(e, func(n ast.Node) bool {
		_, is := n.(*ast.FuncLit)
		holds = holds || is
		return true
	})
	return holds
}

// result adds mutants that return nil instead of an error, and mutants that return the opposite of a bool. It does
// not change a constant bool next to an error, because a caller that gets an error should not use the bool.
func (m *maker) result(of *ast.FuncType, r *ast.ReturnStmt) {
	var types []string
	if of.Results != nil {
		for _, field := range of.Results.List {
			for range max(len(field.Names), 1) {
				types = append(types, m.text(field.Type))
			}
		}
	}
	if len(types) != len(r.Results) {
		return
	}
	last := len(types) - 1
	fails := last >= 0 && types[last] == "error" && m.text(r.Results[last]) != "nil"
	for i, e := range r.Results {
		switch text := m.text(e); {
		case types[i] == "bool" && fails && (text == "true" || text == "false"):
		case types[i] == "bool":
			m.wrap(e, "((", fmt.Sprintf(") != mutantOn(%d))", m.add("not", "return ", e)))
		case types[i] == "error" && text != "nil":
			m.wrap(e, fmt.Sprintf("mutantError(%d, ", m.add("nil", "return ", e)), ")")
		}
	}
}

// released are methods whose calls are never left out, because tests of behaviour do not notice a missing call. The
// race detector notices a missing lock.
var released = []string{"Lock", "Unlock", "RLock", "RUnlock", "cancel", "Close", "Stop", "End", "Rollback"}

// statements adds mutants that leave out a call, an assignment, or a send, defer or go statement.
func (m *maker) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			called := m.called(s.X)
			if called == "panic" || strings.Contains(called, "log.") || m.isRelease(called) {
				continue
			}
		case *ast.DeferStmt:
			if m.isRelease(m.called(s.Call)) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || m.text(s.Lhs[0]) == "_" {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt:
		default:
			continue
		}
		m.wrap(s, fmt.Sprintf("if !mutantOn(%d) { ", m.add("without", "", s)), " }")
	}
}

func (m *maker) called(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok {
		return m.text(call.Fun)
	}
	return ""
}

func (m *maker) isRelease(called string) bool {
	return slices.Contains(released, called[strings.LastIndexByte(called, '.')+1:])
}

// add appends a mutant to the list, and returns its number.
func (m *maker) add(change, of string, n ast.Node) int {
	text := change + ": " + of + strings.Join(strings.Fields(m.text(n)), " ")
	same := 1 // number of mutants in the function with this text
	for _, other := range m.mutants {
		if other.file == m.file && other.function == m.function && other.text == text {
			same++
		}
	}
	added := mutant{m.file, m.function, m.set.Position(n.Pos()).Line, text, text}
	if same > 1 {
		added.change += fmt.Sprintf(" (%d)", same)
	}
	m.mutants = append(m.mutants, added)
	return len(m.mutants)
}

func (m *maker) wrap(n ast.Node, before, after string) {
	order := len(m.inserts)
	m.inserts = append(m.inserts, insert{m.offset(n.Pos()), true, order, before},
		insert{m.offset(n.End()), false, order, after})
}

func (m *maker) text(n ast.Node) string { return string(m.source[m.offset(n.Pos()):m.offset(n.End())]) }

func (m *maker) offset(p token.Pos) int { return m.set.Position(p).Offset }
