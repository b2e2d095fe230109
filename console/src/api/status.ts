/** Reads which models work. It needs no session. */
import { queryOptions } from '@tanstack/react-query'
import { ROUTES } from '../../../schemas/routes.ts'
import type { ServiceStatus } from '../../../schemas/status.ts'
import { reach, readError } from './client.ts'

/** The service measures no more often. */
const REFRESH_MS = 10_000

export const statusQuery = queryOptions({
  queryKey: ['status'],
  refetchInterval: REFRESH_MS,
  queryFn: async ({ signal }): Promise<ServiceStatus> => {
    const response = await reach(ROUTES.showStatus[1], { signal, cache: 'no-cache' })
    if (!response.ok) throw await readError(response)
    return (await response.json()) as ServiceStatus
  },
})
