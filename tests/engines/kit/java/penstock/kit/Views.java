package penstock.kit;

import java.util.Map;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.view.ViewCatalogTests;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** The kit's tests of views. */
public class Views extends ViewCatalogTests<RESTCatalog> {
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
  protected Catalog tableCatalog() {
    return catalog;
  }

  @Override
  protected boolean requiresNamespaceCreate() {
    return true;
  }

  @Override
  protected boolean supportsServerSideRetry() {
    return true;
  }
}
