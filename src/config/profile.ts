/** Limits that `profile: public` sets for unknown customers. Fields that the file sets take precedence. */

const PUBLIC_PROFILE = {
  limits: { requests_per_minute: 600, concurrency: 64 },
  server: { per_address: { connections: 200, unauthenticated_per_minute: 300, buffered_mib: 128 } },
} as const

const isGroup = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function filled(
  value: Readonly<Record<string, unknown>>,
  defaults: Readonly<Record<string, unknown>>,
): object {
  const result: Record<string, unknown> = { ...value }
  for (const [name, fallback] of Object.entries(defaults)) {
    const given = value[name]
    if (given === undefined) result[name] = fallback
    else if (isGroup(given) && isGroup(fallback)) result[name] = filled(given, fallback)
  }
  return result
}

/** Returns the content of a configuration file with the defaults of its profile. */
export const withProfile = (value: unknown): unknown =>
  isGroup(value) && value.profile === 'public' ? filled(value, PUBLIC_PROFILE) : value
