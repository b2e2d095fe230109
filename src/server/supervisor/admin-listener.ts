/** The listener for operators of a service without a gateway. Where there are gateways, they answer operators. */
import { METRICS_CONTENT_TYPE, type OperatorViewDeps } from '../../../pipelines/operator-view.ts'
import type { Settings } from '../../../schemas/config/settings.ts'
import { serveTexts, type TextServer } from '../../http/text-server.ts'

/** Listens until it is closed. Rejects where the address cannot be listened on. */
export function listenForOperators(
  address: NonNullable<Settings['admin']>,
  { unreadiness, metricsText }: Pick<OperatorViewDeps, 'unreadiness' | 'metricsText'>,
): Promise<TextServer> {
  return serveTexts(address, async (path) => {
    if (path === '/healthz') return { status: 200, body: 'ok\n' }
    if (path === '/metrics') return { status: 200, body: await metricsText(), type: METRICS_CONTENT_TYPE }
    if (path !== '/readyz')
      return {
        status: 404,
        body: 'Only /healthz, /readyz and /metrics are here: this service takes no calls\n',
      }
    const reason = unreadiness()
    return reason === null
      ? { status: 200, body: 'ready\n' }
      : { status: 503, body: `not ready: ${reason}\n` }
  })
}
