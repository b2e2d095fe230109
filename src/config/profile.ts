/** Limits that `profile: public` sets for unknown customers. Fields that the file sets take precedence. */

const PUBLIC_PROFILE = {
  limits: { requests_per_minute: 600, concurrency: 64 },
  estimate: 'worst_case',
  hide_auth_errors: true,
  keep_alive_seconds: 15,
  logs: { share_refusals: true },
  server: { per_address: { connections: 200, unauthenticated_per_minute: 300, buffered_mib: 128 } },
} as const

const isGroup = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function fillIn(
  value: Readonly<Record<string, unknown>>,
  defaults: Readonly<Record<string, unknown>>,
): object {
  const result: Record<string, unknown> = { ...value }
  for (const [name, fallback] of Object.entries(defaults)) {
    const given = value[name]
    if (given === undefined) result[name] = fallback
    else if (isGroup(given) && isGroup(fallback)) result[name] = fillIn(given, fallback)
  }
  return result
}

/** Hidden reasoning is what a client that leaves a stream would not pay for. */
const READ_ON = { after_client_leaves: 'read_on' } as const

const readOnWhereItReasons = (model: unknown): unknown =>
  isGroup(model) && isGroup(model.capabilities) && model.capabilities.reasoning === true
    ? fillIn(model, READ_ON)
    : model

/**
 * Returns the content of a configuration file with the defaults of its profile. A file that sets `after_client_leaves`
 * keeps it for all models that set none.
 */
export function withProfile(value: unknown): unknown {
  if (!isGroup(value) || value.profile !== 'public') return value
  const { models } = value
  const areFilled = value.after_client_leaves === undefined && Array.isArray(models)
  return fillIn(areFilled ? { ...value, models: models.map(readOnWhereItReasons) } : value, PUBLIC_PROFILE)
}
