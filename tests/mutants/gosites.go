package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// goSites finds the sites of mutations in a Go file.
func goSites(src string) ([]site, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &goFinder{src: src, file: fset.File(file.FileStart), negated: map[ast.Expr]bool{}}
	ast.Inspect(file, f.visit)
	return f.found, nil
}

type goFinder struct {
	src     string
	file    *token.File
	found   []site
	negated map[ast.Expr]bool // a swap of == and != in these conditions would be the same mutant
}

func (f *goFinder) replace(kind string, from, to token.Pos, replacement string) {
	f.found = append(f.found, in(f.src, kind, f.file.Offset(from), f.file.Offset(to), replacement))
}

func (f *goFinder) negate(condition ast.Expr) {
	f.negated[condition] = true
	text := f.src[f.file.Offset(condition.Pos()):f.file.Offset(condition.End())]
	f.replace("negate", condition.Pos(), condition.End(), "!("+text+")")
}

var goSwap = map[token.Token]string{
	token.LAND: "||", token.LOR: "&&", token.EQL: "!=", token.NEQ: "==",
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.ADD: "-", token.SUB: "+", token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.INC: "--", token.DEC: "++",
}

func (f *goFinder) swap(operator token.Token, at token.Pos) {
	if to, ok := goSwap[operator]; ok {
		f.replace("swap", at, at+token.Pos(len(operator.String())), to)
	}
}

func (f *goFinder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.Field: // a field has the length of an array, and a tag
		return false
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.CaseClause:
		f.deleteAny(n.Body)
	case *ast.CommClause:
		f.deleteAny(n.Body)
	case *ast.BlockStmt:
		f.deleteAny(n.List)
	case *ast.BinaryExpr:
		if !f.negated[n] || n.Op != token.EQL && n.Op != token.NEQ {
			f.swap(n.Op, n.OpPos)
		}
	case *ast.AssignStmt:
		f.swap(n.Tok, n.TokPos)
	case *ast.IncDecStmt:
		f.swap(n.Tok, n.TokPos)
	case *ast.BasicLit:
		if value, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
			f.replace("constant", n.Pos(), n.End(), strconv.FormatInt(value+1, 10))
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			f.replace("constant", n.Pos(), n.End(), other)
		}
	}
	return true
}

// deleteAny deletes each of the statements, unless later ones use what they declare.
func (f *goFinder) deleteAny(statements []ast.Stmt) {
	for _, s := range statements {
		assign, _ := s.(*ast.AssignStmt)
		_, declares := s.(*ast.DeclStmt)
		if !declares && (assign == nil || assign.Tok != token.DEFINE) {
			f.replace("delete", s.Pos(), s.End(), "")
		}
	}
}
