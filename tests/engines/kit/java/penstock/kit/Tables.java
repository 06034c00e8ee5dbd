package penstock.kit;

import java.util.Map;
import org.apache.iceberg.catalog.CatalogTests;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** The kit's tests of namespaces and tables. */
public class Tables extends CatalogTests<RESTCatalog> {
  private static final String FOLDER = System.getProperty("java.io.tmpdir");
  private static RESTCatalog catalog;

  @BeforeAll
  static void connect() {
    catalog = Server.connect("penstock", Map.of());
  }

  @AfterAll
  static void disconnect() throws Exception {
    catalog.close();
  }

  @BeforeEach
  void empty() {
    Server.empty(catalog);
  }

  @Override
  protected RESTCatalog catalog() {
    return catalog;
  }

  @Override
  protected RESTCatalog initCatalog(String name, Map<String, String> properties) {
    return Server.connect(name, properties);
  }

  @Override
  protected boolean supportsNamespaceProperties() {
    return true;
  }

  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override
  protected boolean requiresNamespaceCreate() {
    return true;
  }

  @Override
  protected boolean supportsServerSideRetry() {
    return true;
  }

  /** Where the server lets its clients put tables. */
  @Override
  protected String baseTableLocation(TableIdentifier table) {
    return String.join("/", "file:" + FOLDER, table.namespace().toString(), table.name());
  }
}
