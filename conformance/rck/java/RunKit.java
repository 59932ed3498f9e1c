package org.apache.iceberg.rest;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs test classes and writes what became of each test, one JSON object a line, as soon as it is
 * known: a run that is cut short has told all that it knew.
 *
 * <p>Usage: {@code RunKit FILE CLASS...}. Failures of tests are no failure of this program. It lives
 * in the kit's package because {@link RCKUtils} is visible only there.
 */
public final class RunKit implements TestExecutionListener {
  private final ObjectMapper json = new ObjectMapper();
  private final Writer out;
  private final Set<UniqueId> reported = new HashSet<>();
  private TestPlan plan;

  private RunKit(Writer out) {
    this.out = out;
  }

  public static void main(String[] args) throws Exception {
    LauncherDiscoveryRequestBuilder tests = LauncherDiscoveryRequestBuilder.request();
    for (String name : List.of(args).subList(1, args.length)) {
      tests.selectors(DiscoverySelectors.selectClass(name));
    }
    LauncherDiscoveryRequest request =
        tests
            // The kit starts the reference server unless this parameter of JUnit forbids it.
            .configurationParameter(RCKUtils.RCK_LOCAL, "false")
            .configurationParameter("junit.jupiter.execution.timeout.testable.method.default", "180 s")
            .build();
    try (Writer out = Files.newBufferedWriter(Path.of(args[0]))) {
      LauncherFactory.create().execute(request, new RunKit(out));
    }
    System.exit(0); // some tests leave threads behind
  }

  @Override
  public void testPlanExecutionStarted(TestPlan testPlan) {
    plan = testPlan;
  }

  /**
   * Empties the kit's namespaces before a class of tests. The kit does that before each test, but
   * not after the last one, and refuses to begin a class while there is one of them.
   */
  @Override
  public void executionStarted(TestIdentifier id) {
    if (!(id.getSource().orElse(null) instanceof ClassSource)) {
      return;
    }
    try (RESTCatalog catalog = RCKUtils.initCatalogClient()) {
      RCKUtils.purgeCatalogTestEntries(catalog);
    } catch (Exception e) {
      e.printStackTrace(); // the kit finds out by itself, and fails the class
    }
  }

  @Override
  public void executionSkipped(TestIdentifier id, String reason) {
    for (TestIdentifier test : testsOf(id)) {
      report(test, "skipped", reason);
    }
  }

  @Override
  public void executionFinished(TestIdentifier id, TestExecutionResult result) {
    Throwable cause = result.getThrowable().orElse(null);
    if (id.isTest()) {
      switch (result.getStatus()) {
        case SUCCESSFUL -> report(id, "passed", "");
        case ABORTED -> report(id, "skipped", cause == null ? "" : String.valueOf(cause.getMessage()));
        case FAILED -> report(id, "failed", trace(cause));
      }
      return;
    }
    if (result.getStatus() == Status.SUCCESSFUL) {
      return;
    }
    // What comes before or after all tests of a class broke. Those that did not run have not passed,
    // and if all of them ran, the class itself is what failed.
    boolean blamed = false;
    for (TestIdentifier test : testsOf(id)) {
      if (!reported.contains(test.getUniqueIdObject())) {
        report(test, "failed", trace(cause));
        blamed = true;
      }
    }
    if (!blamed) {
      report(id, "failed", trace(cause));
    }
  }

  private List<TestIdentifier> testsOf(TestIdentifier id) {
    List<TestIdentifier> tests = new ArrayList<>();
    if (id.isTest()) {
      tests.add(id);
    }
    for (TestIdentifier child : plan.getChildren(id)) {
      tests.addAll(testsOf(child));
    }
    // A parameterised test of which no invocation is known counts as one.
    if (tests.isEmpty() && id.getSource().orElse(null) instanceof MethodSource) {
      tests.add(id);
    }
    return tests;
  }

  private synchronized void report(TestIdentifier id, String outcome, String reason) {
    reported.add(id.getUniqueIdObject());
    Map<String, String> line = new LinkedHashMap<>();
    line.put("test", nameOf(id));
    line.put("outcome", outcome);
    line.put("reason", reason);
    try {
      out.write(json.writeValueAsString(line) + "\n");
      out.flush();
    } catch (Exception e) {
      throw new IllegalStateException("cannot report " + line, e);
    }
  }

  /** Class, method and, for one of several invocations, its parameters. */
  private static String nameOf(TestIdentifier id) {
    if (id.getSource().orElse(null) instanceof MethodSource method) {
      String name = simple(method.getClassName()) + "." + method.getMethodName();
      boolean one = id.getUniqueIdObject().getLastSegment().getType().equals("test-template-invocation");
      return one ? name + " " + id.getDisplayName() : name;
    }
    if (id.getSource().orElse(null) instanceof ClassSource type) {
      return simple(type.getClassName());
    }
    return id.getDisplayName();
  }

  private static String simple(String className) {
    return className.substring(className.lastIndexOf('.') + 1);
  }

  private static String trace(Throwable cause) {
    if (cause == null) {
      return "";
    }
    StringWriter text = new StringWriter();
    cause.printStackTrace(new PrintWriter(text));
    return text.toString();
  }
}
