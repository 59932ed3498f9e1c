package org.apache.iceberg.rest;

import java.util.List;
import org.apache.iceberg.catalog.Namespace;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The kit's table tests as a catalog without the reference server's limits runs them: namespaces
 * nest, names may have slashes and dots, and no two tables ever get the same location. Only a
 * namespace without a name stays out: no catalog has to have one.
 */
public class WideKitTests extends RESTCompatibilityKitCatalogTests {
  // Children first. The kit does not know that its tests leave these behind.
  private static final List<Namespace> OURS =
      List.of(
          Namespace.of("parent", "child"),
          Namespace.of("parent", "child1"),
          Namespace.of("parent", "child2"),
          Namespace.of("parent"),
          Namespace.of("new/db"),
          Namespace.of("new.db"));

  @BeforeEach
  void tidy() {
    OURS.stream().filter(catalog()::namespaceExists).forEach(catalog()::dropNamespace);
  }

  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithSlashes() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithDot() {
    return true;
  }

  /** Overridden because the kit's own method is disabled, for what its server cannot do. */
  @Override
  @Test
  public void createTableInUniqueLocation() {
    super.createTableInUniqueLocation();
  }
}
