/** Reads the public catalog: the models of the service and their prices. */
import { queryOptions } from '@tanstack/react-query'
import type { PublicModel } from '../../../schemas/accounts/models.ts'
import { ROUTES } from '../../../schemas/routes.ts'
import { ApiError, reach } from './client.ts'

export const catalogQuery = queryOptions({
  queryKey: ['catalog'],
  staleTime: 60_000,
  queryFn: async ({ signal }): Promise<readonly PublicModel[]> => {
    const response = await reach(ROUTES.listPublicModels[1], { signal })
    if (!response.ok)
      throw new ApiError(
        response.status,
        'catalog_unavailable',
        `The service answered ${response.status}.`,
        response.headers.get('x-gateway-trace'),
      )
    const { models } = (await response.json()) as { models: readonly PublicModel[] }
    return models.filter(({ callable }) => callable)
  },
})
