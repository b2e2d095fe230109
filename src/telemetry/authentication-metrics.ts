/** What `GET /metrics` shows of refused keys. The reasons are few and fixed; addresses are in the log alone. */

type Register = (name: string, help: string, type: 'counter', values: () => unknown[]) => void

/** Answers what counts one refusal. */
export function registerAuthentication(register: Register): (reason: string) => void {
  const refused = new Map<string, number>()
  register(
    'tollgate_authentication_failures_total',
    'Requests that were refused for their key.',
    'counter',
    () => [...refused].map(([reason, value]) => ({ labels: { reason }, value })),
  )
  return (reason) => void refused.set(reason, (refused.get(reason) ?? 0) + 1)
}
