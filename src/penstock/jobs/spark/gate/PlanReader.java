// Writes down a plan, or expressions, of Spark's: every node that can be reached from it, whatever
// holds it (a child, a subquery in an expression, a list, an option, a tuple), with the texts and the
// classes among its arguments. It decides nothing. Compiled in the driver's JVM by `reader.py`, so
// that a plan of any size costs one call; Janino's Java has neither lambdas nor inferred generics.
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;

import scala.Option;

public class PlanReader {
    public Object parse(SparkSession session, String text) throws Exception {
        Option before = enter(session);
        try {
            return session.sessionState().sqlParser().parsePlan(text);
        } finally {
            leave(before);
        }
    }

    public String read(Object plan) {
        return new Writer().write(new Object[] { plan });
    }

    // The texts have a NUL between them.
    public String readExpressions(SparkSession session, String texts) throws Exception {
        String[] parts = texts.split("\u0000", -1);
        Object[] trees = new Object[parts.length];
        Option before = enter(session);
        try {
            for (int i = 0; i < parts.length; i++) {
                trees[i] = session.sessionState().sqlParser().parseExpression(parts[i]);
            }
        } finally {
            leave(before);
        }
        return new Writer().write(trees);
    }

    // The parser goes by the conf of whatever session is the thread's.
    private static Option enter(SparkSession session) {
        Option before = SparkSession.getActiveSession();
        SparkSession.setActiveSession(session);
        return before;
    }

    private static void leave(Option before) {
        if (before.isDefined()) {
            SparkSession.setActiveSession((SparkSession) before.get());
        } else {
            SparkSession.clearActiveSession();
        }
    }

    private static class Writer {
        private static final int LONGEST = 300;
        private final StringBuilder out = new StringBuilder("[");
        private final IdentityHashMap seen = new IdentityHashMap();

        // Nothing, for a plan that is too deep to be written down.
        String write(Object[] trees) {
            try {
                for (int i = 0; i < trees.length; i++) {
                    visit(trees[i], -1, "", new ArrayList());
                }
            } catch (StackOverflowError error) {
                return null;
            }
            return out.append("]").toString();
        }

        private void visit(Object value, int parent, String field, List facts) {
            if (value == null) {
                return;
            } else if (value instanceof TreeNode) {
                node((TreeNode) value, parent);
            } else if (value instanceof org.apache.spark.sql.types.DataType
                    || value instanceof org.apache.spark.sql.types.Metadata
                    || value instanceof org.apache.spark.sql.catalyst.InternalRow
                    || value instanceof Number
                    || value instanceof Character) {
                // Types and plain values do nothing.
                return;
            } else if (value instanceof Boolean) {
                if (((Boolean) value).booleanValue()) {
                    add(facts, field, "true");
                }
            } else if (value instanceof String
                    || value instanceof org.apache.spark.unsafe.types.UTF8String) {
                add(facts, field, value.toString());
            } else if (value instanceof Class) {
                add(facts, field, ((Class) value).getName());
            } else if (value instanceof scala.collection.Iterable) {
                scala.collection.Iterator each = ((scala.collection.Iterable) value).iterator();
                while (each.hasNext()) {
                    visit(each.next(), parent, field, facts);
                }
            } else if (value instanceof Map) {
                Iterator each = ((Map) value).entrySet().iterator();
                while (each.hasNext()) {
                    Map.Entry entry = (Map.Entry) each.next();
                    visit(entry.getKey(), parent, field, facts);
                    visit(entry.getValue(), parent, field, facts);
                }
            } else if (value instanceof Iterable) {
                Iterator each = ((Iterable) value).iterator();
                while (each.hasNext()) {
                    visit(each.next(), parent, field, facts);
                }
            } else if (value instanceof Object[]) {
                Object[] array = (Object[]) value;
                for (int i = 0; i < array.length; i++) {
                    visit(array[i], parent, field, facts);
                }
            } else if (value instanceof scala.Product) {
                scala.Product product = (scala.Product) value;
                for (int i = 0; i < product.productArity(); i++) {
                    visit(product.productElement(i), parent, field, facts);
                }
            } else {
                add(facts, field, "object " + value.getClass().getName());
            }
        }

        private void node(TreeNode tree, int parent) {
            if (seen.containsKey(tree)) {
                return;
            }
            int id = seen.size();
            seen.put(tree, Boolean.TRUE);
            List facts = new ArrayList();
            scala.Product product = (scala.Product) (Object) tree;
            for (int i = 0; i < product.productArity(); i++) {
                visit(product.productElement(i), id, product.productElementName(i), facts);
            }
            visit(tree.children(), id, "children", facts);
            visit(tree.innerChildren(), id, "innerChildren", facts);
            if (out.length() > 1) {
                out.append(",");
            }
            out.append("[").append(id).append(",").append(parent).append(",");
            quote(tree.getClass().getName());
            out.append(",[");
            for (int i = 0; i < facts.size(); i++) {
                if (i > 0) {
                    out.append(",");
                }
                quote((String) facts.get(i));
            }
            out.append("]]");
        }

        private void add(List facts, String field, String text) {
            facts.add(field);
            // No name that is allowed anywhere is as long.
            facts.add(text.length() > LONGEST ? text.substring(0, LONGEST) + "…" : text);
        }

        private void quote(String text) {
            out.append('"');
            for (int i = 0; i < text.length(); i++) {
                char c = text.charAt(i);
                if (c == '"' || c == '\\') {
                    out.append('\\').append(c);
                } else if (c < 32 || c > 126) {
                    out.append("\\u").append(Integer.toHexString(c | 0x10000).substring(1));
                } else {
                    out.append(c);
                }
            }
            out.append('"');
        }
    }
}
