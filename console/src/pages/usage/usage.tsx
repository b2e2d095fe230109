/** What an account used, or all accounts: by day and by a chosen column, beside the period before. */
import { getRouteApi } from '@tanstack/react-router'
import { useIsWhole } from '../scope-field.tsx'
import { AccountUsage } from './account.tsx'
import { InstallationUsage } from './installation.tsx'

const route = getRouteApi('/signed-in/usage')

export function Usage() {
  const { scope } = route.useSearch()
  return useIsWhole(scope) ? <InstallationUsage /> : <AccountUsage />
}
