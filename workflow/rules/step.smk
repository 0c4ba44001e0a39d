# The base rule of all other rules, `use rule step as NAME with:`: log, benchmark, resources and shell command.
# What a job depends on is in a file, its input `options`, because Snakemake's records of params and code can be lost;
# and a job is started by `shell:`, because a `script:` would import Snakemake in each job.
rule step:
    log:
        "<logs>/<job>.log",
    benchmark:
        "<benchmarks>/<job>.tsv"
    pathvars:
        job="step",
    conda:
        f"{ENVS}/simulate.yaml"
    threads: 1
    resources:
        mem_mb=memory,
        runtime=60,
    params:
        # Snakemake does not compare functions of inputs, so another command repeats no job.
        command=STEPS.command,
    shell:
        "{params.command} > {log:q} 2>&1"
