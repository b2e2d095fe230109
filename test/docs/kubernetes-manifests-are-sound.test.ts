/** The manifests for Kubernetes, rendered by kubectl and checked against the schemas of its API. No cluster is needed. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { readSettings } from '../../src/config/settings.ts'
import { fetchDebianPackages } from '../../src/embedded/debian-packages.ts'
import { findProgram } from '../../src/embedded/programs.ts'
import type { ChildRole } from '../../src/server/messages.ts'
import { DRAIN_MS, KILL_AFTER_MS } from '../../src/server/supervisor/stop-bounds.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/tollgate/kubernetes-client')
const FETCHED = join(CACHE, 'usr/bin/kubectl')
const FETCH_BOUND_MS = 120_000
/** What a person writes into the secret; the values are of the right form. */
const SECRET = {
  TOLLGATE_MASTER_KEY: '0'.repeat(64),
  TOLLGATE_DATABASE_OWNER_URL: 'postgres://tollgate_owner:secret@postgres-rw:5432/tollgate',
  DATABASE_URL: 'postgres://tollgate:secret@postgres-rw:5432/tollgate',
  DATABASE_READ_URL: 'postgres://tollgate:secret@postgres-ro:5432/tollgate',
  NATS_URL: 'nats://tollgate:secret@nats:4222',
  CLICKHOUSE_URL: 'http://tollgate:secret@clickhouse:8123/tollgate',
  S3_ENDPOINT: 'https://s3.example.com',
  S3_ACCESS_KEY_ID: 'id',
  S3_SECRET_ACCESS_KEY: 'secret',
  OPENAI_API_KEY: 'secret',
}

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds, whose fields the first test checks against the schemas of the API.
type Manifest = any

async function kubectl(): Promise<string> {
  const installed = findProgram('kubectl')
  if (installed !== null) return installed
  if (!existsSync(FETCHED))
    await fetchDebianPackages({
      words: ['download', 'kubernetes-client'],
      folder: CACHE,
      boundMs: FETCH_BOUND_MS,
      isUsable: async () => existsSync(FETCHED),
    })
  return FETCHED
}

const rendered = execFileSync(await kubectl(), ['kustomize', join(ROOT, 'deploy/kubernetes')], {
  encoding: 'utf8',
})
const manifests: Manifest[] = parseAllDocuments(rendered).map((document) => document.toJS())
const ofKind = (kind: string): Manifest[] => manifests.filter((one) => one.kind === kind)
const workloads = [...ofKind('StatefulSet'), ...ofKind('Deployment')]
const podOf = (workload: Manifest) => workload.spec.template
const isChosen = (pod: Manifest, { matchLabels = {}, matchExpressions = [] }: Manifest): boolean =>
  Object.entries(matchLabels).every(([name, value]) => pod.metadata.labels[name] === value) &&
  matchExpressions.every(({ key, values }: Manifest) => values.includes(pod.metadata.labels[key]))

t.test('every object is what the API takes', async (t) => {
  for (const manifest of manifests) {
    const { apiVersion, kind, metadata } = manifest
    const { [kind]: Model } = await import(`kubernetes-models/${apiVersion}/${kind}`)
    t.doesNotThrow(() => new Model(manifest).validate(), `${kind} ${metadata.name}`)
    t.equal(kind === 'Namespace' ? metadata.name : metadata.namespace, 'tollgate')
  }
  const [gateway] = ofKind('StatefulSet')
  t.throws(
    () => new StatefulSet({ ...gateway, spec: { ...gateway.spec, serviceName: 1 } }).validate(),
    'what it does not take is refused',
  )
})

t.test('pods run as an ordinary user and write nowhere but in their volumes', (t) => {
  t.same(workloads.map(({ metadata }) => metadata.name).sort(), ['gateway', 'settler', 'tasks'])
  for (const workload of workloads) {
    const { spec } = podOf(workload)
    t.match(spec, {
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          image: /:\d/,
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    })
    const claims = (workload.spec.volumeClaimTemplates ?? []).map(({ metadata }: Manifest) => metadata.name)
    const volumes = new Set([...claims, ...spec.volumes.map(({ name }: Manifest) => name)])
    const mounted = spec.containers[0].volumeMounts.map(({ name }: Manifest) => name)
    t.same(new Set(mounted), volumes, 'each volume is mounted')
    t.same(
      claims,
      workload.metadata.name === 'gateway' ? ['data'] : [],
      'the journal of a gateway outlives its pod',
    )
  }
  t.end()
})

t.test('settings and secret are those that the service reads', (t) => {
  const settings = ofKind('ConfigMap').find(({ metadata }) => metadata.name.startsWith('tollgate-settings'))
  const file = ofKind('ConfigMap').find(({ metadata }) => metadata.name === 'tollgate-config')
  for (const workload of workloads) {
    const [container] = podOf(workload).spec.containers
    t.same(container.envFrom, [
      { configMapRef: { name: settings.metadata.name } },
      { secretRef: { name: 'tollgate' } },
    ])
    const own = Object.fromEntries(container.env.map(({ name, value }: Manifest) => [name, value]))
    const read = readSettings({ ...settings.data, ...SECRET, ...own, TOLLGATE_DATA_DIR: '/data' })
    t.same(read.roles, [workload.metadata.name])
    const [configured] = podOf(workload).spec.volumes.filter((one: Manifest) => one.name === 'config')
    t.equal(configured.configMap.name, file.metadata.name)
    const folder = container.volumeMounts.find(({ name }: Manifest) => name === 'config').mountPath
    t.equal(read.configPath, join(folder, 'tollgate.yaml'))
  }
  const loaded = loadConfig(
    { path: 'tollgate.yaml', digest: '', text: file.data['tollgate.yaml'], refusal: null },
    SECRET,
  )
  t.same(loaded.ok ? [] : loaded.problems, [])
  t.end()
})

t.test('services, budgets, policies and the autoscaler find their pods', (t) => {
  const pods = workloads.map(podOf)
  const chosen = (selector: Manifest) => pods.filter((pod) => isChosen(pod, selector)).length
  for (const { spec, metadata } of ofKind('Service')) {
    t.equal(chosen({ matchLabels: spec.selector }), 1, metadata.name)
    const names = pods.flatMap(({ spec }) =>
      (spec.containers[0].ports ?? []).map(({ name }: Manifest) => name),
    )
    for (const { targetPort } of spec.ports) t.ok(names.includes(targetPort), targetPort)
  }
  for (const { spec, metadata } of ofKind('PodDisruptionBudget'))
    t.equal(chosen(spec.selector), 1, metadata.name)
  t.same(
    ofKind('NetworkPolicy').map(({ spec }) => chosen(spec.podSelector)),
    ofKind('NetworkPolicy').map(
      ({ metadata }) => ({ gateway: 1, workers: 2, egress: 3 })[metadata.name as 'egress'],
    ),
  )
  const [scaler] = ofKind('HorizontalPodAutoscaler')
  const [gateway] = ofKind('StatefulSet')
  t.match(scaler.spec.scaleTargetRef, { kind: 'StatefulSet', name: gateway.metadata.name })
  t.equal(gateway.spec.replicas, undefined, 'the autoscaler alone sets the number of pods')
  t.equal(gateway.spec.serviceName, 'gateway-pods')
  t.end()
})

t.test('settlers and task workers are probed and scraped where they listen', (t) => {
  for (const { metadata, ...deployment } of ofKind('Deployment')) {
    const { metadata: labels, spec } = podOf(deployment)
    const [{ env, ports, startupProbe, readinessProbe, livenessProbe }] = spec.containers
    const variables = Object.fromEntries(env.map(({ name, value }: Manifest) => [name, value]))
    t.same(ports, [{ name: 'admin', containerPort: Number(variables.TOLLGATE_ADMIN_PORT) }], metadata.name)
    t.equal(variables.TOLLGATE_ADMIN_HOST, '0.0.0.0')
    t.same(labels.annotations, {
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': variables.TOLLGATE_ADMIN_PORT,
    })
    for (const probe of [startupProbe, readinessProbe, livenessProbe]) t.equal(probe.httpGet.port, 'admin')
    t.equal(readinessProbe.httpGet.path, '/readyz')
    t.equal(livenessProbe.httpGet.path, '/healthz')
  }
  const workers = ofKind('NetworkPolicy').find(({ metadata }) => metadata.name === 'workers')
  t.match(workers.spec.ingress, [{ from: [{}], ports: [{ port: 'admin' }] }], 'for `monitoring` alone')
  t.end()
})

t.test('each role has the time to stop', (t) => {
  for (const workload of workloads) {
    const role = workload.metadata.name as ChildRole
    const { terminationGracePeriodSeconds } = podOf(workload).spec
    t.ok(terminationGracePeriodSeconds * 1000 > DRAIN_MS[role] + KILL_AFTER_MS, role)
  }
  t.end()
})

t.test('a gateway that drains gets no calls', (t) => {
  const [container] = podOf(ofKind('StatefulSet')[0]).spec.containers
  t.equal(container.readinessProbe.httpGet.path, '/readyz?for=calls', 'while an engine is away calls go on')
  t.equal(container.livenessProbe.httpGet.path, '/healthz')
  t.end()
})
