package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// goSites finds what to mutate in a Go file.
func goSites(src []byte) ([]site, error) {
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
	src     []byte
	file    *token.File
	found   []site
	negated map[ast.Expr]bool // conditions: another == in place of != would be the same mutant
}

func (f *goFinder) replace(kind string, from, to token.Pos, replacement string) {
	f.found = append(f.found, in(f.src, kind, f.file.Offset(from), f.file.Offset(to), replacement))
}

func (f *goFinder) text(n ast.Node) string {
	return string(f.src[f.file.Offset(n.Pos()):f.file.Offset(n.End())])
}

func (f *goFinder) negate(condition ast.Expr) {
	f.negated[condition] = true
	f.replace("negate", condition.Pos(), condition.End(), "!("+f.text(condition)+")")
}

// swapped is what an operator becomes, and the kind of that mutation.
var swapped = map[token.Token]struct{ kind, operator string }{
	token.LAND: {"logic", "||"}, token.LOR: {"logic", "&&"},
	token.LSS: {"boundary", "<="}, token.LEQ: {"boundary", "<"},
	token.GTR: {"boundary", ">="}, token.GEQ: {"boundary", ">"},
	token.EQL: {"negate", "!="}, token.NEQ: {"negate", "=="},
	token.ADD: {"arithmetic", "-"}, token.SUB: {"arithmetic", "+"},
	token.ADD_ASSIGN: {"arithmetic", "-="}, token.SUB_ASSIGN: {"arithmetic", "+="},
	token.INC: {"arithmetic", "--"}, token.DEC: {"arithmetic", "++"},
}

func (f *goFinder) swap(operator token.Token, at token.Pos) {
	if to, ok := swapped[operator]; ok {
		f.replace(to.kind, at, at+token.Pos(len(operator.String())), to.operator)
	}
}

func (f *goFinder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field: // the length of an array, and a tag
		return false
	case *ast.FuncDecl:
		if n.Body != nil {
			f.returnEarly(n)
			ast.Inspect(n.Body, f.visit)
		}
		return false
	case *ast.IfStmt:
		f.negate(n.Cond)
		if len(n.Body.List) > 1 {
			f.replace("delete", n.Body.Lbrace+1, n.Body.Rbrace, "")
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, clause := range n.Body.List {
				for _, condition := range clause.(*ast.CaseClause).List {
					f.negate(condition)
				}
			}
		}
	case *ast.CaseClause:
		if n.List != nil {
			f.replace("case", n.Pos(), n.End(), "")
		}
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

// deleteAny deletes each of the statements whose absence may compile.
func (f *goFinder) deleteAny(statements []ast.Stmt) {
	for _, s := range statements {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt, *ast.ReturnStmt, *ast.BranchStmt:
		default:
			continue
		}
		f.replace("delete", s.Pos(), s.End(), "")
	}
}

// returnEarly has a function do nothing, if a value that it may return is plain from its
// signature.
func (f *goFinder) returnEarly(fn *ast.FuncDecl) {
	if len(fn.Body.List) == 0 {
		return
	}
	var values []string
	switch results := fn.Type.Results; {
	case results.NumFields() == 0:
		values = []string{""}
	case results.NumFields() > 1:
	default:
		switch result := results.List[0].Type.(type) {
		case *ast.StarExpr, *ast.MapType, *ast.FuncType, *ast.InterfaceType, *ast.ChanType:
			values = []string{"nil"}
		case *ast.ArrayType:
			if result.Len == nil {
				values = []string{"nil"}
			}
		case *ast.Ident:
			values = map[string][]string{
				"bool": {"true", "false"}, "error": {"nil"}, "any": {"nil"}, "string": {`""`},
				"int": {"0"}, "int32": {"0"}, "int64": {"0"}, "uint32": {"0"}, "uint64": {"0"},
			}[result.Name]
		}
	}
	for _, v := range values {
		f.replace("return", fn.Body.Lbrace+1, fn.Body.Lbrace+1, " return "+v+";")
	}
}
