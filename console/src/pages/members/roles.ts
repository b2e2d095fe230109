/** The roles in an organization by name. */
import { t } from '../../i18n.ts'

export const memberRoles = () => ({
  owner: t('Owner'),
  admin: t('Admin'),
  billing: t('Billing'),
  member: t('Member'),
})
