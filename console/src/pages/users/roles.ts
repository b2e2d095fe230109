/** Roles in the installation and their translated names. */
import type { InstallationRole } from '../../../../schemas/management/operation.ts'
import { t } from '../../i18n.ts'

export const NO_ROLE = 'none'

export const nameRoles = () => ({
  [NO_ROLE]: t('None'),
  operator: t('Operator'),
  auditor: t('Auditor'),
})

/** Returns the role as the API takes it. */
export const toRole = (chosen: InstallationRole | typeof NO_ROLE): InstallationRole | null =>
  chosen === NO_ROLE ? null : chosen
