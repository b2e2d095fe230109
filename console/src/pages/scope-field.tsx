/** The choice between the account of the page and the whole installation, for those who may read it. */
import { useSession } from '../api/session.ts'
import { t } from '../i18n.ts'
import { SelectField } from '../ui/form.tsx'

const INSTALLATION = 'installation'

/** Returns whether a page is to show the whole installation. @param scope the search parameter */
export const useIsWhole = (scope: string | undefined): boolean =>
  useSession().user.installation_role !== null && scope === INSTALLATION

interface ScopeFieldProps {
  readonly value: string | undefined
  onChange(scope: string): void
}

export function ScopeField({ value, onChange }: ScopeFieldProps) {
  if (useSession().user.installation_role === null) return null
  return (
    <SelectField
      label={t('Scope')}
      value={value ?? ''}
      onText={onChange}
      options={[
        ['', t('This account')],
        [INSTALLATION, t('The installation')],
      ]}
    />
  )
}
