/** Origins of the web pages that may call `/mcp`. */
import type { ConfigFile } from '../../../schemas/config/file.ts'

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]']

/** Returns the origins that browsers have for the service's own address: this machine has several names. */
function ownOrigins(publicUrl: string): readonly string[] {
  const { protocol, hostname, port, origin } = new URL(publicUrl)
  if (!LOOPBACK_HOSTS.includes(hostname)) return [origin]
  return LOOPBACK_HOSTS.map((host) => `${protocol}//${host}${port === '' ? '' : `:${port}`}`)
}

export function pageOrigins(publicUrl: string, config: () => ConfigFile): () => readonly string[] {
  const own = ownOrigins(publicUrl)
  return () => [...own, ...config().mcp.allowed_origins]
}
