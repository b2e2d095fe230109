/** The settings of a call: model, instructions, parameters, tools. */
import { useLingui } from '@lingui/react'
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { CheckField, Field, SelectField, TextAreaField } from '../../ui/field.tsx'
import { readTools, type Settings } from './request.ts'

const numberOf = (text: string): number | null => (text === '' ? null : Number(text))

const EXAMPLE_TOOLS = '[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]'

interface SettingsProps {
  readonly settings: Settings
  readonly models: readonly PublicModel[]
  onChange(changes: Partial<Settings>): void
}

export function SettingsPanel({ settings, models, onChange }: SettingsProps) {
  useLingui()
  const change = useChangeSearch()
  const { problem } = readTools(settings.tools)
  const problems = {
    not_json: t('This is not JSON.'),
    not_a_list: t('Tools are a JSON list.'),
    no_function_name: t('Each tool needs a function with a name.'),
  }
  return (
    <section
      aria-label={t('Settings')}
      className="flex flex-col gap-4 rounded-lg border border-line bg-surface p-4"
    >
      <SelectField
        label={t('Model')}
        value={settings.model}
        onChange={({ target }) => change({ model: target.value }, { isReplaced: true })}
      >
        {models.map(({ id, display_name }) => (
          <option key={id} value={id}>
            {display_name}
          </option>
        ))}
      </SelectField>
      <TextAreaField
        label={t('Instructions')}
        rows={3}
        value={settings.system}
        onChange={({ target }) => onChange({ system: target.value })}
      />
      <div className="grid grid-cols-2 gap-3">
        <Field
          label={t('Temperature')}
          type="number"
          min={0}
          max={2}
          step={0.1}
          value={settings.temperature ?? ''}
          onChange={({ target }) => onChange({ temperature: numberOf(target.value) })}
        />
        <Field
          label={t('Top P')}
          type="number"
          min={0}
          max={1}
          step={0.05}
          value={settings.topP ?? ''}
          onChange={({ target }) => onChange({ topP: numberOf(target.value) })}
        />
        <Field
          label={t('Max output tokens')}
          type="number"
          min={1}
          step={1}
          value={settings.maxTokens ?? ''}
          onChange={({ target }) => onChange({ maxTokens: numberOf(target.value) })}
        />
        <SelectField
          label={t('Reasoning effort')}
          value={settings.reasoningEffort ?? ''}
          onChange={({ target: { value } }) =>
            onChange({ reasoningEffort: value === '' ? null : (value as 'low' | 'medium' | 'high') })
          }
        >
          <option value="">{t('Default')}</option>
          <option value="low">{t('Low')}</option>
          <option value="medium">{t('Medium')}</option>
          <option value="high">{t('High')}</option>
        </SelectField>
      </div>
      <CheckField
        label={t('Stream the answer')}
        checked={settings.stream}
        onChange={({ target }) => onChange({ stream: target.checked })}
      />
      <TextAreaField
        label={t('Tools, as JSON')}
        rows={4}
        isCode
        value={settings.tools}
        placeholder={EXAMPLE_TOOLS}
        error={problem === null ? null : problems[problem]}
        onChange={({ target }) => onChange({ tools: target.value })}
      />
    </section>
  )
}
