package penstock.kit;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;

/** The server that is tested: system properties that begin with `client.` say how to reach it. */
final class Server {
  private static final String CLIENT = "client.";

  private Server() {}

  /** A client with what the kit wants every client to have, and more properties of one test's. */
  static RESTCatalog connect(String name, Map<String, String> more) {
    Map<String, String> properties = new HashMap<>();
    for (String each : new String[] {"view-default.key1", "view-default.key2", "view-default.key3"}) {
      properties.put(each, "catalog-default-" + each.substring(each.indexOf('.') + 1));
    }
    properties.put("view-override.key3", "catalog-override-key3");
    properties.put("view-override.key4", "catalog-override-key4");
    properties.put("table-default.default-key1", "catalog-default-key1");
    properties.put("table-default.default-key2", "catalog-default-key2");
    properties.put("table-default.override-key3", "catalog-default-key3");
    properties.put("table-override.override-key3", "catalog-override-key3");
    properties.put("table-override.override-key4", "catalog-override-key4");
    Properties system = System.getProperties();
    for (String each : system.stringPropertyNames()) {
      if (each.startsWith(CLIENT)) {
        properties.put(each.substring(CLIENT.length()), system.getProperty(each));
      }
    }
    properties.putAll(more);
    RESTCatalog catalog = new RESTCatalog();
    catalog.initialize(name, properties);
    return catalog;
  }

  /** Drops everything, as each test begins with an empty catalog. */
  static void empty(RESTCatalog catalog) {
    catalog.listNamespaces().forEach(each -> drop(catalog, each));
  }

  private static void drop(RESTCatalog catalog, Namespace namespace) {
    catalog.listNamespaces(namespace).forEach(each -> drop(catalog, each));
    for (TableIdentifier each : catalog.listViews(namespace)) {
      catalog.dropView(each);
    }
    for (TableIdentifier each : catalog.listTables(namespace)) {
      catalog.dropTable(each, false);
    }
    catalog.dropNamespace(namespace);
  }
}
