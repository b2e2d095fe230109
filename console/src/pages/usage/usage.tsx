/** The usage of an account or of all accounts, by day and by a chosen dimension, compared with the previous period. */
import { getRouteApi } from '@tanstack/react-router'
import { useIsWhole } from '../filters.tsx'
import { AccountUsage } from './account.tsx'
import { InstallationUsage } from './installation.tsx'

const route = getRouteApi('/signed-in/usage')

export function Usage() {
  const { scope } = route.useSearch()
  return useIsWhole(scope) ? <InstallationUsage /> : <AccountUsage />
}
